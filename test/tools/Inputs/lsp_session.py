"""A short session with a language server given as argument; prints what it answers."""

import json
import subprocess
import sys

BAD = """tt.func @f() {
  %0 = tt.make_range {end = 8 : i32, start = 8 : i32} : tensor<8xi32>
  tt.return
}
"""
GOOD = """tt.func @f() {
  %0 = tt.get_program_id x : i32
  tt.return
}
"""

server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
next_id = 0


def send(method, params, is_request=False):
    global next_id
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if is_request:
        next_id += 1
        message["id"] = next_id
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def receive():
    length = None
    while line := server.stdout.readline().strip():
        key, _, value = line.partition(b":")
        if key.lower() == b"content-length":
            length = int(value)
    if length is None:
        sys.exit("the server hung up")
    return json.loads(server.stdout.read(length))


def wait_for(matches):
    while not matches(message := receive()):
        pass
    return message


def open_file(uri, text):
    document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
    send("textDocument/didOpen", {"textDocument": document})
    answer = wait_for(lambda message: message.get("method") == "textDocument/publishDiagnostics")
    return answer["params"]["diagnostics"]


send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, is_request=True)
capabilities = wait_for(lambda message: message.get("id") == 1)["result"]["capabilities"]
print("initialized: hover", capabilities["hoverProvider"])
send("initialized", {})
for diagnostic in open_file("file:///bad.mlir", BAD):
    print(f"bad.mlir line {diagnostic['range']['start']['line']}: {diagnostic['message']}")
print(f"good.mlir: {len(open_file('file:///good.mlir', GOOD))} diagnostics")
position = {"textDocument": {"uri": "file:///good.mlir"}, "position": {"line": 1, "character": 10}}
send("textDocument/hover", position, is_request=True)
print("hover:", wait_for(lambda message: message.get("id") == 2)["result"]["contents"]["value"])
send("shutdown", None, is_request=True)
wait_for(lambda message: message.get("id") == 3)
send("exit", None)
print("exit code", server.wait(timeout=60))
