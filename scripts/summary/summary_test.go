package main

import (
	"bytes"
	"strings"
	"testing"
)

// The events of one go test over four packages: one passes with a skip, one
// fails, one has no tests, one does not build.
const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:3: a note\n"}
{"Action":"pass","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Test":"TestTwo","Output":"    a_test.go:9: gpu: no driver\n"}
{"Action":"output","Package":"m/a","Test":"TestTwo","Output":"--- SKIP: TestTwo (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestTwo"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.01s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"output","Package":"m/b","Test":"TestGood","Output":"--- PASS: TestGood (0.00s)\n"}
{"Action":"pass","Package":"m/b","Test":"TestGood"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:7: is 1, want 2\n"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Test":"TestCut","Output":"panic: timed out\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.02s\n"}
{"Action":"fail","Package":"m/b"}
{"Action":"output","Package":"m/c","Output":"?   \tm/c\t[no test files]\n"}
{"Action":"skip","Package":"m/c"}
{"ImportPath":"m/d","Action":"build-output","Output":"d/d.go:1:1: expected 'package'\n"}
{"ImportPath":"m/d","Action":"build-fail"}
{"Action":"output","Package":"m/d","Output":"FAIL\tm/d [build failed]\n"}
{"Action":"fail","Package":"m/d"}
`

func TestDigest(t *testing.T) {
	var out strings.Builder
	records, err := digest(strings.NewReader(events), &out, "check")
	if err != nil {
		t.Fatal(err)
	}
	const printed = "ok  \tm/a\t0.01s\n" +
		"    b_test.go:7: is 1, want 2\n--- FAIL: TestBad (0.00s)\npanic: timed out\nFAIL\tm/b\t0.02s\n" +
		"?   \tm/c\t[no test files]\n" +
		"d/d.go:1:1: expected 'package'\nFAIL\tm/d [build failed]\n"
	if out.String() != printed {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), printed)
	}
	var log bytes.Buffer
	if err := write(&log, records); err != nil {
		t.Fatal(err)
	}
	const logged = `{"part":"check","package":"m/a","line":"ok  \tm/a\t0.01s","passed":1}
{"part":"check","package":"m/a","test":"TestTwo","reason":"gpu: no driver"}
{"part":"check","package":"m/b","line":"FAIL\tm/b\t0.02s","passed":1,"failed":1}
{"part":"check","package":"m/c","line":"?   \tm/c\t[no test files]"}
{"part":"check","package":"m/d","line":"FAIL\tm/d [build failed]"}
`
	if log.String() != logged {
		t.Errorf("logged\n%s\nwant\n%s", log.String(), logged)
	}
}

func TestDigestBrokenEvents(t *testing.T) {
	if _, err := digest(strings.NewReader(`{"Action":`), new(strings.Builder), "check"); err == nil {
		t.Error("no error")
	}
}

func TestReport(t *testing.T) {
	const (
		good = `{"part":"check","package":"github.com/sluice-engine/sluice/comm","line":"ok  \tcomm\t1s","passed":3}
{"part":"check","status":"ok","seconds":61,"limit":300}
{"part":"race","package":"github.com/sluice-engine/sluice/comm","line":"ok  \tcomm\t2s","passed":3}
{"part":"race","package":"github.com/sluice-engine/sluice/tables","line":"ok  \ttables\t2s","passed":4}
{"part":"race","status":"ok","seconds":90.4,"limit":480}
{"part":"clean-check","status":"ok","seconds":1,"limit":60}
`
		table = `ok  	comm	1s
ok  	comm	2s
ok  	tables	2s

part         result  time  limit
check        ok      61 s  300 s
race         ok      90 s  480 s
clean-check  ok      1 s   60 s

feature  check  race  skipped
comm     3      3     -
tables   -      4     -
`
	)
	tests := []struct{ name, log, out, fault string }{
		{"good", good, table + "PASS: 10 tests in 3 parts\n", ""},
		{
			"optional skip", good + `{"part":"check","package":"x","test":"TestGPU","reason":"gpu: no driver"}`,
			table + "gpu      -      -     1 (no driver)\nPASS: 10 tests in 3 parts\n", "",
		},
		{
			"forbidden skip", good + `{"part":"check","package":"x","test":"TestMPI","reason":"mpi: no mpirun"}`,
			"mpi      -      -     1 (no mpirun)\n", `TestMPI skipped: "mpi: no mpirun" is not optional`,
		},
		{
			"skip without feature", good + `{"part":"check","package":"x","test":"TestA","reason":"too slow: at night"}`,
			"unnamed  -      -     1 (too slow: at night)\n", "is not optional",
		},
		{"slow part", good + `{"part":"fuzz","status":"over its limit","seconds":9,"limit":5}`, "over its limit", "part fuzz: over its limit"},
		{"failed test", good + `{"part":"check","package":"x","failed":1}`, "", "part check: x: 1 tests failed"},
		{"nothing ran", `{"part":"deps","status":"ok"}`, "", "no test ran"},
		{"broken", good + `{"part":`, "", "read log"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			err := report(strings.NewReader(tt.log), &out)
			if tt.fault == "" && (err != nil || out.String() != tt.out) {
				t.Errorf("error %v, printed\n%s\nwant\n%s", err, out.String(), tt.out)
			}
			if tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault) || !strings.Contains(out.String(), tt.out)) {
				t.Errorf("error %v, want %q; printed\n%s", err, tt.fault, out.String())
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"run", "log"}, {"report"}, {"other", "a", "b"}} {
		if err := command(args); err != errUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
