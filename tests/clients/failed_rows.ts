// Uploads a file, runs a job over it, and prints its failed rows.
import createClient from "openapi-fetch";
import type { components, paths } from "./rowmill.js";

const api = createClient<paths>({ baseUrl: process.env["ROWMILL_URL"] ?? "" });

function answer<T>({ data, error }: { data?: T; error?: components["schemas"]["ProblemView"] }): T {
  if (data === undefined) throw new Error(error?.detail);
  return data;
}

const text = "id,amount\n1,10\n2,many\n3,30\n";
const query = { fileName: "orders.csv" };
const upload = answer(await api.POST("/api/uploads", {
  params: { query }, body: text, bodySerializer: () => text, headers: { "Content-Type": "text/csv" },
}));
const params = { schema: { properties: { amount: { type: "integer" } } } };
const body = { jobType: "validate", fileGuid: upload.fileGuid, params };
let job = answer(await api.POST("/api/jobs", { body }));
const path = { jobGuid: job.jobGuid };
while (!job.finishedAt) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  job = answer(await api.GET("/api/jobs/{jobGuid}", { params: { path } }));
}
const page = answer(await api.GET("/api/jobs/{jobGuid}/items", { params: { path, query: { outcome: "failed" } } }));
console.log(job.outcome, page.items.map((item) => `${item.row} ${item.code}`).join());
