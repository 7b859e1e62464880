"""A worker: python3 worker.py API_URL JOB_TYPE, with a token in ROWMILL_TOKEN. Have a supervisor start it again."""
import json, os, signal, socket, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor, wait

def process(record, params):  # Replace this. It returns the output of an item, or raises an error.
    return {"name": record["name"], "length": len(record["name"])}

def call(action, body):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("ROWMILL_TOKEN", "")}
    request = urllib.request.Request(f"{sys.argv[1]}/api/tasks/{action}", json.dumps(body).encode(), headers)
    while True:
        try:
            return json.loads(urllib.request.urlopen(request, timeout=10).read() or "null")
        except OSError as error:  # Without an answer, or after a refusal that passes, the same request is sent again.
            if getattr(error, "code", 503) < 500 and error.code != 429:
                raise
        time.sleep(1)

def report(task, **outcomes):  # Without outcomes: a beat.
    end = time.monotonic() + task["stopAfterSeconds"]
    order = call(task["taskId"] + "/beat", {"token": task["token"], **outcomes})["order"]
    if order == "continue":  # SIGALRM ends the process before another worker may begin.
        signal.setitimer(signal.ITIMER_REAL, end - time.monotonic())
    return order

with ThreadPoolExecutor(1) as pool:
    while True:
        while not (task := call("lease", {"jobTypes": [sys.argv[2]], "worker": socket.gethostname()})):
            time.sleep(5)
        order, items = report(task), iter(task["items"])
        while order == "continue" and (item := next(items, None)):
            name, future = item["itemIdentifier"], pool.submit(process, item["record"], task["params"])
            while not wait([future], task["beatSeconds"] / 2).done:
                report(task)
            error = future.exception()
            outcome = {"itemIdentifier": name, **({"message": repr(error)} if error else {"output": future.result()})}
            order = report(task, itemIdentifiers=[name], **{"batchItemFailures" if error else "outputs": [outcome]})
        if order != "finished":
            call(task["taskId"] + "/release", {"token": task["token"]})
        signal.alarm(0)
