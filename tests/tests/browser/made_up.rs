//! The page over answers that are made up here: states that a real job reaches rarely, or not for long.

use acceptance::local_stack::LocalStack;
use serde_json::{Value, json};

use crate::browser::{Chromium, Tab, quoted};
use crate::reach::{SHIFTS, WATCH_SHIFTS, axe, finds_nothing};
use crate::stack::{data, on_the_stack, page};

/// Answers the requests in `window.answers` and notes all requests in `window.asked`, each as method, path and query.
const MAKE_UP: &str = "window.answers = {}; window.asked = []; window.real = window.fetch; window.fetch = (url, options = {}) => { \
    const {pathname, search} = new URL(url); \
    const path = `${options.method ?? 'GET'} ${pathname.slice(pathname.lastIndexOf('/api/'))}`; \
    asked.push(path + search); \
    const made = answers[path]; \
    return made ? Promise.resolve(new Response(made.body && JSON.stringify(made.body), made)) : real(url, options); }; null";

const GUID: &str = "01a20467-9b8d-7a54-b7e0-a09dae80a33b";

/// Opens the list.
async fn open(stack: &LocalStack, chromium: &Chromium) -> Tab {
    let tab = chromium.tab(&page(stack)).await;
    tab.until("document.querySelector('job-list .empty, job-list tbody tr')").await;
    let _: Value = tab.value(MAKE_UP).await;
    tab
}

/// Answers this request from now on. The page asks for a job again at once.
async fn answer(tab: &Tab, request: &str, status: u16, body: &Value) {
    let made = json!({ "status": status, "body": body, "headers": { "content-type": "application/json", "retry-after": "0.1" } });
    let _: Value = tab.value(&format!("answers[{}] = {made}, null", quoted(request))).await;
}

fn ago(seconds: i64) -> String {
    before(jiff::Timestamp::now(), seconds)
}

fn before(end: jiff::Timestamp, seconds: i64) -> String {
    (end - jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// A job of 60 seconds, up to now, with these changes.
fn job(changes: &Value) -> Value {
    let job = json!({
        "jobGuid": GUID, "jobType": "import", "fileGuid": null, "priority": "normal", "status": "running", "outcome": null,
        "stage": "processing", "message": "Job running", "percent": 50, "itemCount": 100_000_000, "itemCountFinal": true,
        "itemProgress": 60_000, "itemsSucceeded": 60_000, "itemsFailed": 0, "itemsSkipped": 0, "chunksInFlight": 158, "cost": null,
        "attempt": 1, "createdAt": ago(61), "startedAt": ago(60), "firstChunkAt": ago(60), "heartbeatAt": ago(0),
        "deadlineAt": ago(-3600), "finishedAt": null, "expiresAt": null, "pause": null, "error": null, "warnings": [],
        "unprocessed": null, "metadata": { "fileName": "made-up.csv" },
    });
    changed(job, changes)
}

fn changed(mut view: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().expect("changes") {
        view[name] = value.clone();
    }
    view
}

/// Shows a job that is answered like this from now on.
async fn show(tab: &Tab, guid: &str, changes: &Value) {
    let mut job = job(changes);
    job["jobGuid"] = guid.into();
    answer(tab, &format!("GET /api/jobs/{guid}"), 200, &job).await;
    let _: Value = tab.value(&format!("location.hash = '#/jobs/{guid}', null")).await;
    let word = quoted(changes["word"].as_str().unwrap_or("running"));
    tab.until(&format!(
        "document.querySelector('job-page[name={}] state-badge')?.textContent === {word}",
        quoted(guid)
    ))
    .await;
}

/// The figure below this label.
async fn figure(tab: &Tab, label: &str) -> String {
    let label = quoted(label);
    tab.value(&format!(
        "[...document.querySelectorAll('.figures dt')].find(one => one.textContent === {label})?.nextElementSibling.textContent"
    ))
    .await
}

/// True if no text of these elements covers another one's.
async fn stand_apart(tab: &Tab, elements: &str) -> bool {
    let boxes = format!(
        "[...document.querySelectorAll({})].map(one => {{ const range = document.createRange(); range.selectNodeContents(one); \
         return range.getBoundingClientRect(); }}).filter(one => one.width > 0)",
        quoted(elements)
    );
    tab.value(&format!(
        "(boxes => boxes.every((one, index) => boxes.slice(index + 1).every(other => one.right <= other.left || \
         other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top)))({boxes})"
    ))
    .await
}

#[test]
fn a_job_shows_the_figures_that_it_has() {
    on_the_stack("a_job_shows_the_figures_that_it_has", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        let many = 100_000_000;
        let ended = json!({ "status": "completed", "outcome": "partial", "word": "some failed", "percent": 100, "itemProgress": many,
            "itemsSucceeded": many, "itemsFailed": many, "itemsSkipped": many, "finishedAt": ago(10), "chunksInFlight": 0 });
        show(&tab, "many", &ended).await;
        for width in [1280, 1000, 390] {
            tab.resize(width, 860).await;
            assert!(stand_apart(&tab, ".figures dd").await, "figures overlap on {width} pixels");
        }
        tab.resize(1280, 860).await;

        // Of a job that was run again only its last attempt is known.
        let again = json!({ "status": "completed", "outcome": "succeeded", "word": "completed", "attempt": 2,
            "firstChunkAt": ago(14), "finishedAt": ago(10) });
        show(&tab, "again", &again).await;
        assert_eq!(figure(&tab, "Last attempt took").await, "4.0 s");

        show(
            &tab,
            "empty",
            &json!({ "status": "completed", "outcome": "empty", "word": "nothing to do", "percent": 100,
            "itemCount": 0, "itemProgress": 0, "itemsSucceeded": 0, "finishedAt": ago(10) }),
        )
        .await;
        let badge = "document.querySelector('job-page state-badge').className + document.querySelector('job-page .percent').textContent";
        assert_eq!(tab.value::<String>(badge).await, "badge warn–");

        // A paused job does nothing.
        show(&tab, "held", &json!({})).await;
        tab.until("document.querySelector('.chunks-in-flight dd').textContent === '158'").await;
        answer(
            &tab,
            "GET /api/jobs/held",
            200,
            &job(&json!({ "jobGuid": "held", "itemsSucceeded": 70_000, "percent": 60 })),
        )
        .await;
        tab.until("parseFloat(document.querySelector('.items-per-second dd').textContent) > 0").await;
        show(&tab, "held", &json!({ "status": "paused", "word": "paused", "itemsSucceeded": 70_000, "percent": 60 }))
            .await;
        for name in ["Items per second", "Time left", "Chunks in flight"] {
            assert_eq!(figure(&tab, name).await, "–", "{name} of a paused job");
        }

        for none in [GUID, "nonsense"] {
            let _: Value = tab.value(&format!("location.hash = '#/jobs/{none}', null")).await;
            tab.sees("No such job").await;
            assert_eq!(tab.value::<u32>("document.querySelectorAll('.panel, main button').length").await, 0);
        }
    });
}

#[test]
fn the_speed_is_that_of_processed_rows_and_a_short_job_has_an_average() {
    on_the_stack("the_speed_is_that_of_processed_rows_and_a_short_job_has_an_average", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        let plot = "document.querySelector('rate-plot path.line').checkVisibility()";
        let skipped = json!({ "itemProgress": 1_060_000, "itemsSkipped": 1_000_000 });
        // The page watches from now on; what was before is its average.
        show(&tab, "watched", &skipped).await;
        tab.until(plot).await;
        let speeds = "document.querySelector('rate-plot .top').textContent.match(/[\\d,]+(?=,|$)/g).map(one => Number(one.replaceAll(',', '')))";
        let [average, highest]: [f64; 2] = tab.value(speeds).await;
        assert!((800.0..=1000.0).contains(&average) && highest >= average && highest < 1100.0, "{average} {highest}");

        let end = jiff::Timestamp::now();
        let short = json!({ "startedAt": before(end, 2), "firstChunkAt": before(end, 2), "itemsSucceeded": 6000, "itemProgress": 9000, "itemsSkipped": 3000 });
        show(&tab, "short", &short).await;
        assert!(!tab.value::<bool>(plot).await);
        let mut ended = short;
        ended["finishedAt"] = end.to_string().into();
        (ended["status"], ended["outcome"], ended["word"]) =
            ("completed".into(), "succeeded".into(), "completed".into());
        show(&tab, "short", &ended).await;
        let average: String = tab.value("document.querySelector('rate-plot .plain').textContent").await;
        assert_eq!((average.as_str(), figure(&tab, "Items per second").await.as_str()), ("3,000 on average", "3,000"));
        assert!(!tab.value::<bool>(plot).await);
    });
}

/// The last query of the list.
const LISTED: &str = "asked.findLast(one => one.startsWith('GET /api/jobs?')).split('?')[1]";

#[test]
fn the_list_finds_what_a_badge_says_and_its_address_has_all_that_was_chosen() {
    on_the_stack(
        "the_list_finds_what_a_badge_says_and_its_address_has_all_that_was_chosen",
        async |stack, chromium| {
            let tab = open(stack, &chromium).await;
            tab.until("document.querySelector('.mode').textContent === 'Live'").await;
            let requests: Vec<String> =
                tab.value("performance.getEntriesByType('resource').map(one => one.name)").await;
            // One more for the page itself.
            assert!(requests.len() < 8, "{requests:#?}");
            let painted: f64 = tab.value("performance.getEntriesByName('first-contentful-paint')[0].startTime").await;
            println!("{} requests, first contentful paint after {painted:.0} ms", requests.len() + 1);

            let name = format!("{}.csv", "long-".repeat(50));
            let many = 100_000_000;
            let jobs = json!({ "jobs": [job(&json!({ "metadata": { "fileName": name }, "status": "completed", "outcome": "partial",
            "itemProgress": many, "itemsFailed": many, "finishedAt": ago(10) }))], "next": "cursor" });
            answer(&tab, "GET /api/jobs", 200, &jobs).await;
            for (word, query) in [
                ("some failed", "outcome=partial"),
                ("all failed", "outcome=failed"),
                ("nothing to do", "outcome=empty"),
                ("completed", "outcome=succeeded"),
                ("failed", "status=failed"),
                ("paused", "status=paused"),
            ] {
                tab.choose("Status", word).await;
                tab.until(&format!("{LISTED} === 'limit=25&{query}'")).await;
            }
            let link = "(link => [link.title, link.textContent, link.scrollWidth > link.clientWidth])(document.querySelector('job-list .name'))";
            assert_eq!(tab.value::<Value>(link).await, json!([name, name, true]));
            for width in [1280, 390] {
                tab.resize(width, 860).await;
                assert!(
                    stand_apart(&tab, "job-list td.number, job-list td.time").await,
                    "figures overlap on {width} pixels"
                );
                let fits = "(list => list.scrollWidth <= list.clientWidth)(document.querySelector('job-list .scroll'))";
                assert!(tab.value::<bool>(fits).await, "a row does not fit into {width} pixels");
            }
            tab.resize(1280, 860).await;

            tab.choose("Status", "some failed").await;
            tab.choose("Type", "import").await;
            tab.press("Older").await;
            let query = "limit=25&outcome=partial&jobType=import";
            tab.until(&format!("{LISTED} === '{query}&after=cursor'")).await;
            // A view further, and back.
            let _: Value = tab.value("location.hash = '#/new', null").await;
            tab.until("document.querySelector('new-job')").await;
            assert!(
                !tab.value::<bool>("document.querySelector('.mode').checkVisibility()").await,
                "nothing is followed"
            );
            let _: Value = tab.value("history.back(), null").await;
            tab.until("document.querySelector('job-list select').value === 'some failed'").await;
            tab.until(&format!("{LISTED} === '{query}&after=cursor'")).await;
            let _: Value = tab.value("location.reload(), null").await;
            tab.until("!window.answers && [...document.querySelectorAll('job-list select')].map(one => one.value).join() === 'some failed,import'").await;
            tab.until(&format!(
                "performance.getEntriesByType('resource').some(one => one.name.endsWith('{query}&after=cursor'))"
            ))
            .await;
            let _: Value = tab.value(MAKE_UP).await;
            answer(&tab, "GET /api/jobs", 200, &jobs).await;
            tab.press("Newer").await;
            tab.until(&format!("{LISTED} === '{query}'")).await;
        },
    );
}

/// True if the browser would ask before it leaves the page.
const ASKS: &str = "!dispatchEvent(new Event('beforeunload', {cancelable: true}))";

#[test]
fn corrections_are_set_in_failing_cells_only_and_wait_while_another_view_is_shown() {
    on_the_stack(
        "corrections_are_set_in_failing_cells_only_and_wait_while_another_view_is_shown",
        async |stack, chromium| {
            let tab = open(stack, &chromium).await;
            let columns: Vec<String> = ["age", "country"]
                .map(str::to_owned)
                .into_iter()
                .chain((0..30).map(|one| format!("column {one}")))
                .collect();
            let items: Vec<Value> = (1..=50)
            .map(|row| {
                let column = if row % 2 == 0 { "age" } else { "country" };
                let raw = format!("a{row},c{row}{}", ",x".repeat(30));
                json!({ "row": row, "code": "schema_mismatch", "message": "is wrong", "column": column, "raw": raw })
            })
            .collect();
            let header: Vec<&str> = columns.iter().map(String::as_str).chain(["row"]).collect();
            let table = json!({ "format": "csv", "delimiter": ",", "columns": columns, "correctedHeader": header });
            answer(&tab, "GET /api/jobs/wrong/items", 200, &json!({ "items": items, "next": null, "table": table }))
                .await;
            let ended = json!({ "status": "completed", "outcome": "partial", "word": "some failed", "itemsFailed": 50, "finishedAt": ago(10) });
            show(&tab, "wrong", &ended).await;
            tab.press("Correct rows").await;

            // The numbers of the rows stay below the head of the table.
            let corner = "(scroll => { scroll.scrollTo(90, 200); const {x, y} = scroll.getBoundingClientRect(); \
                      return document.elementFromPoint(x + 20, y + 10).closest('thead') !== null; })(document.querySelector('failed-rows .scroll'))";
            let _: Value = tab.value("document.querySelector('failed-rows').scrollIntoView(), null").await;
            assert!(tab.value::<bool>(corner).await, "a row number covers the head");

            let cells = "[...document.querySelectorAll('failed-rows [data-index=\"0\"]')].map(one => one.value)";
            let before: Vec<String> = tab.value(cells).await;
            tab.choose("Set column", "0").await;
            tab.write("to", "7").await;
            tab.press("Set 25 failing cells").await;
            tab.sees("25 of 50 failed rows corrected").await;
            let set: Vec<String> = tab.value(cells).await;
            let expected: Vec<String> = before
                .iter()
                .enumerate()
                .map(|(index, cell)| if index % 2 == 1 { "7".to_owned() } else { cell.clone() })
                .collect();
            assert_eq!(set, expected);
            tab.press("Undo").await;
            tab.sees("Nothing is corrected yet.").await;
            assert_eq!(tab.value::<Vec<String>>(cells).await, before);
            assert!(!tab.value::<bool>(ASKS).await, "nothing is unsaved");

            tab.press("Set 25 failing cells").await;
            let _: Value = tab.value("location.hash = '#/', null").await;
            tab.until("document.querySelector('job-list')").await;
            assert!(tab.value::<bool>(ASKS).await, "corrections are unsaved");
            let _: Value = tab.value("history.back(), null").await;
            tab.sees("25 of 50 failed rows corrected").await;
            assert_eq!(tab.value::<Vec<String>>(cells).await, expected);
            tab.press("Discard corrections").await;
            assert!(!tab.value::<bool>(ASKS).await, "nothing is unsaved");
        },
    );
}

#[test]
fn a_new_job_keeps_what_was_written_and_starts_once() {
    on_the_stack("a_new_job_keeps_what_was_written_and_starts_once", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        tab.press("New job").await;
        assert!(!tab.value::<bool>(ASKS).await, "nothing is written");
        let file = data("unicode.csv");
        tab.choose_files(&[&file]).await;
        tab.sees("uploaded, 100%").await;
        tab.choose("Type", "validate").await;
        let schema = r#"{"required": ["no-such"]}"#;
        let written = |text: &str| format!("document.querySelector('[name=schema]').value === {}", quoted(text));
        tab.write("Schema", schema).await;
        // Columns that the schema requires and the file lacks are named beside its rows.
        tab.until("document.querySelector('file-preview').innerText.includes('no-such')").await;
        tab.choose("Type", "transform").await;
        tab.choose("Type", "validate").await;
        tab.until(&written(schema)).await;
        tab.press("Make a schema of the types").await;
        tab.until("document.querySelector('[name=schema]').value.includes('codepoint')").await;
        tab.press("Undo").await;
        tab.until(&written(schema)).await;

        let _: Value = tab.value("location.hash = '#/', null").await;
        tab.until("document.querySelector('job-list')").await;
        assert!(tab.value::<bool>(ASKS).await, "a new job is not started");
        tab.press("New job").await;
        tab.sees("uploaded, 100%").await;
        tab.until(&written(schema)).await;

        // What is wrong without the file is told while the file is still on its way.
        tab.press("Remove").await;
        tab.slow(50_000.0).await;
        tab.choose_files(&[&file]).await;
        tab.sees("uploading").await;
        let problem = json!({ "code": "invalid_params", "detail": "The schema names the type numbr." });
        answer(&tab, "POST /api/jobs/estimate", 422, &problem).await;
        tab.press("Start job").await;
        tab.sees("The schema names the type numbr.").await;
        answer(&tab, "POST /api/jobs/estimate", 204, &Value::Null).await;
        tab.write("Schema", "").await;
        let twice = "(start => { start.click(); start.click(); return start.textContent; })(document.querySelector('new-job .primary'))";
        assert_eq!(tab.value::<String>(twice).await, "Starts when uploaded");
        tab.press("Do not start yet").await;
        tab.press("Start job").await;
        tab.until("document.querySelector('new-job .primary').disabled").await;
        tab.slow(-1.0).await;
        tab.job_is("completed").await;
        assert_eq!(tab.value::<u32>("asked.filter(one => one === 'POST /api/jobs').length").await, 1);
        assert!(!tab.value::<bool>(ASKS).await, "all is started");
    });
}

const URL: &str = "https://data.example.org/2026/orders.csv?signature=secret";

/// Has the file of `URL` fetched, with these changes of the upload in all answers that follow.
async fn fetch(tab: &Tab, changes: &Value) {
    let begun = json!({ "fileGuid": GUID, "status": "fetching", "fileName": "orders.csv", "contentType": "text/csv",
        "size": 0, "sha256": null, "createdAt": ago(0), "expiresAt": ago(-3600),
        "source": { "url": "https://data.example.org/2026/orders.csv" } });
    answer(tab, "POST /api/uploads", 202, &begun).await;
    answer(tab, &format!("GET /api/uploads/{GUID}"), 200, &changed(begun, changes)).await;
    tab.write("Or the URL of a file", URL).await;
    tab.press("Fetch").await;
}

/// Waits until the field of the URL tells this, and has the URL again.
async fn refused(tab: &Tab, detail: &str) {
    let told = format!("document.querySelector('new-job [role=alert]').innerText === {}", quoted(detail));
    tab.until(&told).await;
    let field = "(url => [url.value, url.ariaInvalid, document.querySelectorAll('.file').length])\
                 (document.querySelector('new-job [type=url]'))";
    assert_eq!(tab.value::<Value>(field).await, json!([URL, "true", 0]));
}

#[test]
fn a_file_of_a_url_is_fetched_or_its_field_tells_why_not() {
    on_the_stack("a_file_of_a_url_is_fetched_or_its_field_tells_why_not", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        let axe = axe().await;
        tab.press("New job").await;
        let none = "Nothing is fetched from data.example.org.";
        let problem = json!({ "code": "invalid_request", "field": "source.url", "detail": none });
        answer(&tab, "POST /api/uploads", 400, &problem).await;
        tab.write("Or the URL of a file", URL).await;
        tab.press("Fetch").await;
        refused(&tab, none).await;
        finds_nothing(&tab, &axe, "a URL that is refused").await;

        let mebibyte = 1024 * 1024;
        fetch(&tab, &json!({ "bytesStored": mebibyte })).await;
        tab.sees("fetching, 1.00 MiB").await;
        let is_known = "document.querySelector('.file [role=progressbar]').hasAttribute('aria-valuenow')";
        assert!(!tab.value::<bool>(is_known).await, "nobody knows the size yet");
        answer(
            &tab,
            &format!("GET /api/uploads/{GUID}"),
            200,
            &json!({ "fileGuid": GUID, "status": "fetching", "fileName": "orders.csv", "size": 10 * mebibyte,
                     "bytesStored": 4 * mebibyte }),
        )
        .await;
        let all = "/^fetching, 40% · 4\\.00 MiB · .+\\/s · .+ left$/.test(document.querySelector('.file .state').textContent)";
        tab.until(all).await;
        let row = "[document.querySelector('.file [role=progressbar]').ariaValueNow, \
                   document.querySelector('.file-name').textContent]";
        assert_eq!(tab.value::<[String; 2]>(row).await, ["40", "orders.csv10.0 MiB"]);
        assert!(tab.value::<bool>(ASKS).await, "a file is on its way");
        finds_nothing(&tab, &axe, "a file that is fetched").await;
        answer(&tab, &format!("DELETE /api/uploads/{GUID}"), 204, &Value::Null).await;
        tab.press("Remove").await;
        tab.until(&format!("asked.includes('DELETE /api/uploads/{GUID}')")).await;
        assert!(!tab.value::<bool>(ASKS).await, "nothing is left");

        let gone = "The server answered 404.";
        fetch(&tab, &json!({ "status": "failed", "failure": { "code": "source_refused", "detail": gone } })).await;
        refused(&tab, gone).await;

        let preview = json!({ "format": "csv", "packing": null, "delimiter": ",", "encoding": "utf-8", "headerRow": 1,
            "columns": [{ "name": "order", "type": "integer" }], "rows": [{ "row": 1, "cells": ["4711"], "output": "4711;EUR" },
                { "row": 2, "cells": ["x"], "problem": { "code": "schema_violation", "message": "no number" } }],
            "complete": true, "warnings": [], "paramsProblem": null });
        answer(&tab, &format!("POST /api/uploads/{GUID}/preview"), 200, &preview).await;
        fetch(&tab, &json!({ "status": "ready", "size": 10 * mebibyte, "bytesStored": 10 * mebibyte })).await;
        tab.sees("fetched, 100%").await;
        tab.sees("First rows of orders.csv").await;
        let table = "[...document.querySelectorAll('file-preview tr')].map(row => [...row.cells].map(cell => cell.innerText).join(' '))";
        let rows: Vec<String> = tab.value(table).await;
        assert_eq!(rows[1..], ["1 4711 4711;EUR", "2 x schema_violation no number"]);
        finds_nothing(&tab, &axe, "what a job would make of the rows").await;
        assert!(!tab.value::<bool>("document.querySelector('new-job .primary').disabled").await);
    });
}

#[test]
fn a_job_of_workers_shows_who_works_on_it_and_nothing_moves() {
    on_the_stack("a_job_of_workers_shows_who_works_on_it_and_nothing_moves", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        let why = |code: &str| json!({ "jobGuid": GUID, "at": ago(0), "reasons": [{ "code": code, "message": "This is why." }] });
        let task = |worker: Option<&str>, state: &str, done: u64| {
            let since = worker.map(|_| ago(120));
            json!({ "taskId": "t", "firstRow": 4001, "items": 20, "done": done, "state": state, "worker": worker, "since": since,
                    "lastBeatAt": worker.map(|_| ago(61)), "until": null })
        };
        let tasks = json!({ "tasks": [task(None, "offered", 0), task(Some("render-7"), "held", 7)], "next": "more" });
        answer(&tab, &format!("GET /api/jobs/{GUID}/tasks"), 200, &tasks).await;
        answer(&tab, &format!("GET /api/jobs/{GUID}/why"), 200, &why("silent")).await;
        show(&tab, GUID, &json!({})).await;
        tab.sees("This is why.").await;
        let is_shown = "document.querySelector('job-tasks').checkVisibility()";
        assert!(!tab.value::<bool>(is_shown).await, "most jobs have no tasks");
        let _: Value = tab.value(WATCH_SHIFTS).await;

        answer(&tab, &format!("GET /api/jobs/{GUID}/why"), 200, &why("tasks_held")).await;
        tab.until(is_shown).await;
        let text: String = tab.value("document.querySelector('job-tasks').innerText").await;
        assert!(text.contains("1 held, 0 dead, 1 offered, of the first 2 tasks"), "{text}");
        let row =
            "[...document.querySelectorAll('job-tasks tbody tr:first-child td')].map(one => one.textContent).join('|')";
        assert_eq!(tab.value::<String>(row).await, "render-7|held|4,001|7 of 20|2 min ago|1 min ago");
        assert_eq!(tab.value::<Vec<Value>>(SHIFTS).await, Vec::<Value>::new());
        finds_nothing(&tab, &axe().await, "a job of workers").await;
    });
}

#[test]
fn a_job_over_many_files_shows_each_of_them_and_the_file_of_a_failed_row() {
    on_the_stack("a_job_over_many_files_shows_each_of_them_and_the_file_of_a_failed_row", async |stack, chromium| {
        let tab = open(stack, &chromium).await;
        show(&tab, "one", &json!({})).await;
        let is_shown = "document.querySelector('job-inputs').checkVisibility()";
        assert!(!tab.value::<bool>(is_shown).await, "most jobs read one file");

        let problem = json!({ "code": "unreadable_file", "message": "The gzip file ends early." });
        let file = |name: &str, number: u32, failed: u32, problem: &Value| {
            json!({ "name": name, "number": number, "state": "done", "rows": 2000, "pending": 0, "succeeded": 2000 - failed,
                        "failed": failed, "skipped": 0, "problem": problem })
        };
        let files = [file("a.csv", 0, 1, &Value::Null), file("b.csv.gz", 1, 1, &problem)];
        answer(&tab, "GET /api/jobs/many/files", 200, &json!({ "files": files, "next": "9-2-4001" })).await;
        let item = json!({ "row": 7, "code": "ragged_row", "message": "is wrong", "raw": "one cell",
                               "file": { "name": "a.csv", "row": 7, "layout": "0123456789abcdef" } });
        let table = json!({ "format": "text", "delimiter": null, "columns": [], "correctedHeader": [] });
        answer(&tab, "GET /api/jobs/many/items", 200, &json!({ "items": [item], "next": null, "table": table })).await;
        let ended = json!({ "status": "completed", "outcome": "partial", "word": "some failed", "itemsFailed": 2, "files": 3,
                                "finishedAt": ago(10) });
        show(&tab, "many", &ended).await;
        tab.sees("The gzip file ends early.").await;
        let row = "[...document.querySelectorAll('job-inputs tbody tr:first-child > *')].map(one => one.textContent).join('|')";
        assert_eq!(tab.value::<String>(row).await, "a.csv|done|2,000|1,999|1|0");
        tab.sees("a.csv, row 7").await;

        answer(
            &tab,
            "GET /api/jobs/many/files",
            200,
            &json!({ "files": [file("c.csv", 2, 0, &Value::Null)], "next": null }),
        )
        .await;
        let _: Value = tab.value("document.querySelectorAll('job-inputs .pages button')[1].click(), null").await;
        tab.sees("c.csv").await;
        tab.press("Correct rows").await;
        let _: Value = tab
            .value("(text => { text.value = '1,2'; text.dispatchEvent(new Event('input')); return null; })(document.querySelector('failed-rows textarea'))")
            .await;
        tab.sees("1 of 2 failed rows corrected").await;
        finds_nothing(&tab, &axe().await, "a job over many files").await;
        tab.press("Discard corrections").await;

        tab.press("New job").await;
        tab.choose_files(&[&data("unicode.csv"), &data("unicode.csv.zst")]).await;
        tab.until("document.querySelector('new-job .one-job').checkVisibility()").await;
        let _: Value = tab.value("document.querySelector('new-job .one-job input').click(), null").await;
        tab.choose("Type", "validate").await;
        tab.press("Start job").await;
        tab.job_is("completed").await;
        tab.until("document.querySelectorAll('job-inputs tbody tr').length === 2").await;
        tab.sees("unicode.csv and 1 more").await;
    });
}
