package cpu
import ("testing";"context";"fmt")
func TestZZ(t *testing.T){ for n,p:=range oneSidedPrograms(t){ sz:=int64(64<<20); u:=int64(p.Coll.NumChunks())*16; rep,err:=Run(context.Background(),p,Options{Bytes:sz/u*u,Iterations:3,Exact:true}); if err!=nil{t.Fatal(err)}; fmt.Println(n,rep.Min,rep.MoveRate,"GB/s",rep.Verified)} }
