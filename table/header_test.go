package table

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The structures of the header and ours have the same sizes, and fields at the same
// offsets, by a C compiler's word.
func TestHeaderLayout(t *testing.T) {
	cc := ""
	for _, name := range []string{"cc", "gcc", "g++", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			cc = path
			break
		}
	}
	if cc == "" {
		t.Skip("there is no C compiler here")
	}
	var program, want strings.Builder
	program.WriteString("#include <stddef.h>\n#include <stdio.h>\n#include \"mscclsh_table.h\"\nint main(void) {\n")
	for _, s := range []struct {
		name   string
		of     any
		size   int
		fields string
	}{
		{"mscclsh_table_header", cHeader{}, headerBytes,
			"magic version header_bytes file_bytes digest entries programs n_entries n_programs abi zero made_by zeros"},
		{"mscclsh_table_entry", cEntry{}, entryBytes,
			"name source min_bytes max_bytes multiple alignment collective ranks nodes priority root dtypes ops memory threads max_blocks in_place out_of_place mixable unit zero"},
		{"mscclsh_table_program", cProgram{}, progBytes,
			"tbs title n_steps n_deps n_divides slot_bytes count_chunks scratch_chunks max_regime ranks tbs_total slots protocol one"},
		{"mscclsh_table_one", cOne{}, oneBytes,
			"blocks n_ops n_operands n_refs all_channels all_semaphores packets double_scratch alignment threads"},
	} {
		typ := reflect.TypeOf(s.of)
		program.WriteString("printf(\"%zu\\n\", sizeof(" + s.name + "));\n")
		want.WriteString(number(int(typ.Size())))
		if int(typ.Size()) != s.size {
			t.Errorf("%s: %d bytes, want %d", s.name, typ.Size(), s.size)
		}
		for i, f := range strings.Fields(s.fields) {
			program.WriteString("printf(\"%zu\\n\", offsetof(" + s.name + ", " + f + "));\n")
			want.WriteString(number(int(typ.Field(i).Offset)))
			if !strings.EqualFold(strings.ReplaceAll(f, "_", ""), typ.Field(i).Name) && f != "tbs" && f != "blocks" {
				t.Errorf("%s: field %s stands where ours is %s", s.name, f, typ.Field(i).Name)
			}
		}
	}
	for i, name := range CollectiveNames() {
		constant := "MSCCLSH_" + strings.ToUpper(name)
		if name == "reduce" {
			constant = "MSCCLSH_REDUCE_TO_ROOT"
		}
		program.WriteString("printf(\"%d\\n\", " + constant + ");\n")
		want.WriteString(number(i))
	}
	program.WriteString("printf(\"%d\\n%d\\n\", MSCCLSH_WINDOWS, MSCCLSH_TABLE_VERSION);\nreturn 0; }\n")
	want.WriteString(number(int(Windows)) + number(version))
	if got := compileAndRun(t, cc, program.String()); got != want.String() {
		t.Errorf("the compiler says\n%swant\n%s", got, want.String())
	}
}

func number(n int) string { return fmt.Sprintln(n) }

func compileAndRun(t *testing.T, cc, program string) string {
	t.Helper()
	include, err := filepath.Abs("../runtime/nccl/include")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-I", include, "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
