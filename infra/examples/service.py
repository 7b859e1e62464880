"""A service that answers later: python3 service.py PORT API_URL. The secret that `rowmill webhook-key TYPE --standard`
prints is in WEBHOOK_SECRET, a token in ROWMILL_TOKEN."""
import json, os, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor, wait
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standard_webhook import is_genuine

def process(record, params):  # Replace this. It returns the output of an item, or raises an error.
    return {"name": record["name"], "length": len(record["name"])}

def call(task, action, **fields):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("ROWMILL_TOKEN", "")}
    body = json.dumps({"token": task["token"], **fields}).encode()
    request = urllib.request.Request(sys.argv[2] + task["links"][action], body, headers)
    gives_up = time.monotonic() + task["stopAfterSeconds"]
    while True:
        try:
            return json.loads(urllib.request.urlopen(request, timeout=10).read() or "null")
        except OSError as error:  # Without an answer, or after a refusal that passes, the same request is sent again.
            if time.monotonic() > gives_up or getattr(error, "code", 503) < 500 and error.code != 429:
                raise
        time.sleep(1)

def work(task):
    order = "continue"
    for item in task["items"]:
        name, future = item["itemIdentifier"], items.submit(process, item["record"], task["params"])
        while order == "continue" and not wait([future], task["beatSeconds"] / 2).done:
            order = call(task, "beat")["order"]
        if order != "continue":  # The job is paused or stopped.
            future.cancel()
            return call(task, "release")
        error = future.exception()
        outcome = {"itemIdentifier": name, **({"message": repr(error)} if error else {"output": future.result()})}
        outcomes = {"batchItemFailures" if error else "outputs": [outcome]}
        order = call(task, "beat", itemIdentifiers=[name], **outcomes)["order"]

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        genuine = is_genuine(os.environ["WEBHOOK_SECRET"], self.headers, body)
        if genuine:
            tasks.submit(work, json.loads(body))
        self.send_response(202 if genuine else 403)
        self.end_headers()

tasks, items = ThreadPoolExecutor(64), ThreadPoolExecutor(64)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
