package sarif

import (
	"bytes"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// One finding with everything, one without a place and of an unknown rule: the
// text below was written by hand after the standard's section 3.
func TestWrite(t *testing.T) {
	race := diag.Errorf(diag.Pos{File: "my ring 50%.star", Line: 4, Col: 7}, "race", "two steps <touch> one place").
		Note(diag.Pos{File: "ring.star", Line: 9, Col: 2}, "the other is here").
		Note(diag.Pos{}, "rank 1 tb 0 step 3").Suggest("let one wait")
	odd := diag.Warningf(diag.Pos{}, "odd", "no place")
	var b bytes.Buffer
	err := Write(&b, Tool{"mscclsh", "1.0", []Rule{{"race", "a race", "what it is", "how to mend it", diag.Error}}}, diag.List{race, odd})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "version": "2.1.0",
  "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
  "runs": [
    {
      "tool": {
        "driver": {
          "name": "mscclsh",
          "version": "1.0",
          "rules": [
            {
              "id": "race",
              "shortDescription": {
                "text": "a race"
              },
              "fullDescription": {
                "text": "what it is"
              },
              "help": {
                "text": "how to mend it"
              },
              "defaultConfiguration": {
                "level": "error"
              }
            },
            {
              "id": "odd",
              "shortDescription": {
                "text": "odd"
              },
              "fullDescription": {
                "text": "odd"
              },
              "help": {
                "text": "odd"
              },
              "defaultConfiguration": {
                "level": "warning"
              }
            }
          ]
        }
      },
      "results": [
        {
          "ruleId": "race",
          "ruleIndex": 0,
          "level": "error",
          "message": {
            "text": "two steps <touch> one place\nrank 1 tb 0 step 3\nlet one wait"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "my%20ring%2050%25.star"
                },
                "region": {
                  "startLine": 4,
                  "startColumn": 7
                }
              }
            }
          ],
          "relatedLocations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "ring.star"
                },
                "region": {
                  "startLine": 9,
                  "startColumn": 2
                }
              },
              "message": {
                "text": "the other is here"
              }
            }
          ]
        },
        {
          "ruleId": "odd",
          "ruleIndex": 1,
          "level": "warning",
          "message": {
            "text": "no place"
          }
        }
      ]
    }
  ]
}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
