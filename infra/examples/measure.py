def handler(event, context):
    failures, outputs = [], []
    for item in event["items"]:
        name = item["record"].get("name")
        if not name:
            failures.append({"itemIdentifier": item["itemIdentifier"], "code": "no_name", "column": "name"})
        else:
            outputs.append({"itemIdentifier": item["itemIdentifier"], "output": {"name": name, "length": len(name)}})
    return {"batchItemFailures": failures, "outputs": outputs}
