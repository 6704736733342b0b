"""Talks to the kernel of the mscclsh that is named, as a notebook does."""

import signal
import subprocess
import sys
import xml.dom.minidom

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

PATIENCE = 30  # seconds


def want(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, want {expected!r}")


class Notebook:
    def __init__(self, manager):
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def answer(self, request):
        reply = self.client.get_shell_msg(timeout=PATIENCE)
        want("the request that is answered", reply["parent_header"]["msg_id"], request)
        return reply["content"]

    def said(self, request):
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["content"].get("execution_state") == "idle":
                return
            if message["msg_type"] not in ("status", "execute_input"):
                yield message["msg_type"], message["content"]

    def run(self, code, **options):
        request = self.client.execute(code, **options)
        return list(self.said(request)), self.answer(request)

    def printed(self, code):
        said, _ = self.run(code)
        return "".join(content["text"] for kind, content in said if kind == "stream")


def main(tool):
    subprocess.run([tool, "kernel", "install"], check=True)
    spec = KernelSpecManager().get_kernel_spec("mscclsh")
    want("the way of interrupting", spec.interrupt_mode, "message")
    want("the command", spec.argv[1:], ["kernel", "run", "{connection_file}"])

    manager = KernelManager(kernel_name="mscclsh")
    manager.start_kernel()
    notebook = Notebook(manager)
    client = notebook.client

    want("a stream", notebook.printed('print("hello")'), "hello\n")
    said, reply = notebook.run(
        'with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)):\n'
        '    chunk(1, "input", 0).reduce(chunk(0, "input", 0)).copy(0, "input", 0)\n'
        "dag"
    )
    want("a program", reply["status"], "ok")
    pictures = [content["data"] for kind, content in said if kind == "display_data"]
    want("pictures", [sorted(data) for data in pictures], [["image/svg+xml", "text/plain"]])
    drawing = xml.dom.minidom.parseString(pictures[0]["image/svg+xml"])
    want("the drawing", drawing.documentElement.tagName, "svg")

    said, reply = notebook.run("nobody(1)")
    errors = [content for kind, content in said if kind == "error"]
    want("errors", len(errors), 1)
    want("the name of the error", errors[0]["ename"], "undefined-name")
    want("the caret", errors[0]["traceback"][1:3], ["    nobody(1)", "    ^"])
    want("the count of cells", reply["execution_count"], 3)

    reply = notebook.answer(client.complete("x = MSCCLPro"))
    want("completion", (reply["matches"], reply["cursor_start"]), (["MSCCLProgram"], 4))
    reply = notebook.answer(client.is_complete("for i in range(3):"))
    want("an open block", (reply["status"], reply["indent"]), ("incomplete", "    "))
    reply = notebook.answer(client.inspect("chunk"))
    want("help", reply["found"], True)
    reply = notebook.answer(client.history(hist_access_type="tail", n=1))
    want("history", reply["history"], [[0, 3, "nobody(1)"]])

    for how in ("a message", "a signal"):
        request = client.execute('def forever():\n    while True:\n        pass\nprint("begins")\nforever()')
        while client.get_iopub_msg(timeout=PATIENCE)["msg_type"] != "stream":
            pass
        if how == "a message":
            manager.interrupt_kernel()
        else:
            manager.provisioner.process.send_signal(signal.SIGINT)
        want("the end by " + how, notebook.answer(request)["ename"], "Interrupted")
    said, _ = notebook.run("x = 5\nx")
    want("the session afterwards", [content["data"] for _, content in said], [{"text/plain": "5"}])

    first = client.execute("nobody(2)")
    second = client.execute("print(1)")
    want("a cell that fails", notebook.answer(first)["status"], "error")
    want("one that waited for it", notebook.answer(second)["status"], "aborted")
    want("the heartbeat", client.hb_channel.is_beating(), True)

    client.stop_channels()
    manager.restart_kernel()
    notebook = Notebook(manager)
    said, reply = notebook.run("x")
    want("a name of the session before the restart", reply["status"], "error")
    process = manager.provisioner.process
    manager.shutdown_kernel()
    want("the exit code", process.returncode, 0)
    subprocess.run([tool, "kernel", "uninstall"], check=True)


main(sys.argv[1])
