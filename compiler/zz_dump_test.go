package compiler_test
import ("testing";"bytes";"context";"os";"strings";"github.com/mscclsh/mscclsh/compiler")
func TestDump(t *testing.T){
 for _, id := range strings.Fields(os.Getenv("DUMP")) {
  f := strings.Split(id, ",")
  p := program(t, f[0], 4, map[string]string{"protocol": f[1], "inplace": f[2]})
  q,_,err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{KeepBlocks: len(f)>3})
  if err != nil { t.Fatal(err) }
  var b bytes.Buffer
  q.WriteText(&b)
  t.Log(b.String())
 }
}
