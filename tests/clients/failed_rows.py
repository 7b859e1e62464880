"""Uploads a file, runs a job over it, and prints its failed rows."""

import io
import os
import time

from rowmill_client import Client
from rowmill_client.api.jobs import create_job, show_job
from rowmill_client.api.results import list_items
from rowmill_client.api.uploads import create_upload
from rowmill_client.models import CreateJobRequest, ListItemsOutcome
from rowmill_client.types import File

client = Client(base_url=os.environ["ROWMILL_URL"])
file = File(payload=io.BytesIO(b"id,amount\n1,10\n2,many\n3,30\n"))
upload = create_upload.sync(client=client, body=file, file_name="orders.csv")
schema = {"properties": {"amount": {"type": "integer"}}}
request = {"jobType": "validate", "fileGuid": str(upload.file_guid), "params": {"schema": schema}}
job = create_job.sync(client=client, body=CreateJobRequest.from_dict(request))
while not job.finished_at:
    time.sleep(0.2)
    job = show_job.sync(job.job_guid, client=client)
page = list_items.sync(job.job_guid, client=client, outcome=ListItemsOutcome.FAILED)
print(job.outcome, ",".join(f"{item.row} {item.code}" for item in page.items))
