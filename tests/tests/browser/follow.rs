//! A job as it goes on: cancelled, with a lost connection, and for long.

use acceptance::local_stack::LocalStack;
use serde_json::{Value, json};

use crate::browser::{Chromium, Tab};
use crate::new_job::figures;
use crate::stack::{job_over, job_page, on_the_stack, page};

fn rows(count: usize) -> String {
    "id,name\n".to_owned() + &(0..count).map(|id| format!("{id},name {id}\n")).collect::<String>()
}

/// A job that lasts long enough to be seen, if its file has tens of thousands of rows: each row is written into a
/// dataset of this name, one chunk after the other.
pub fn long_job(file: &str, dataset: &str) -> Value {
    let params = json!({ "dataset": dataset, "key": "id" });
    json!({ "jobType": "import", "fileGuid": file, "params": params, "maxConcurrency": 1 })
}

/// Opens the page, then creates a job and goes to it: a browser may take longer to open a page than a job to end.
async fn follow(stack: &LocalStack, chromium: &Chromium, request: &Value) -> (Tab, String) {
    let tab = chromium.tab(&page(stack)).await;
    tab.sees("New job").await;
    let job = stack.create_from(request).await;
    let _: Value = tab.value(&format!("location.hash = '#/jobs/{job}', null")).await;
    (tab, job)
}

#[test]
fn a_job_is_cancelled_on_the_page() {
    on_the_stack("a_job_is_cancelled_on_the_page", async |stack, chromium| {
        let file = stack.upload("text/csv", rows(100_000)).await;
        let mut body = long_job(&file, "cancelled");
        body["metadata"] = json!({ "fileName": "long.csv" });
        let (tab, job) = follow(stack, &chromium, &body).await;
        tab.job_is("running").await;
        tab.until("document.querySelector('.mode').textContent === 'Live'").await;
        let in_flight = |chunks| format!("document.querySelector('.chunks-in-flight dd').textContent === '{chunks}'");
        tab.until(&in_flight(1)).await;
        tab.press("Cancel job").await;
        tab.until("document.querySelector('dialog[open]')").await;
        tab.press("Go on with the job").await;
        tab.until("!document.querySelector('dialog[open]')").await;
        tab.press("Cancel job").await;
        let _: Value = tab.value("document.querySelector('dialog .filled').click()").await;
        tab.job_is("cancelled").await;
        tab.until(&in_flight(0)).await;
        let shown = stack.job(&job).await;
        assert_eq!(shown["status"], "cancelled", "{shown}");
        // The counts on the page are those of the API.
        let count = |name: &str| shown[name].as_u64().expect("a number");
        let of_page: Vec<u64> =
            figures(&tab).await[1..].iter().map(|text| text.replace(',', "").parse().expect("a number")).collect();
        assert_eq!(of_page, ["itemsSucceeded", "itemsFailed", "itemsSkipped"].map(count));
    });
}

#[test]
fn a_job_is_paused_and_resumed_on_the_page() {
    on_the_stack("a_job_is_paused_and_resumed_on_the_page", async |stack, chromium| {
        let file = stack.upload("text/csv", rows(30_000)).await;
        let body = long_job(&file, "paused");
        let (tab, job) = follow(stack, &chromium, &body).await;
        tab.job_is("running").await;
        tab.press("Pause").await;
        tab.job_is("paused").await;
        let (status, _) = acceptance::local_stack::answer(stack.post(&format!("/api/jobs/{job}/resume"))).await;
        assert_eq!(status, 202);
        // Somebody else has resumed it: the stack says so.
        tab.job_is("running").await;
        tab.press("Pause").await;
        tab.job_is("paused").await;
        tab.press("Change limits").await;
        // A fast machine comes here within a second.
        let created_at = stack.job(&job).await["createdAt"].clone();
        tab.until(&format!("Date.now() > Date.parse({created_at}) + 1000")).await;
        tab.write("Deadline in seconds", "1").await;
        tab.press("Apply").await;
        tab.sees("this deadline has passed").await;
        tab.write("Deadline in seconds", "7200").await;
        tab.write("Failed rows at most", "7").await;
        tab.choose("Priority", "low").await;
        tab.press("Apply").await;
        tab.until("!document.querySelector('dialog[open]')").await;
        tab.sees("7 failed rows").await;
        let shown = stack.job(&job).await;
        assert_eq!((&shown["priority"], &shown["tolerance"]["count"]), (&json!("low"), &json!(7)), "{shown}");
        tab.press("Resume").await;
        tab.job_is("completed").await;
        assert_eq!(figures(&tab).await[0], "30,000 of 30,000");
    });
}

#[test]
fn a_page_that_lost_its_connection_goes_on_when_it_is_back() {
    on_the_stack("a_page_that_lost_its_connection_goes_on_when_it_is_back", async |stack, chromium| {
        let file = stack.upload("text/csv", rows(30_000)).await;
        let body = long_job(&file, "lost");
        let (tab, job) = follow(stack, &chromium, &body).await;
        tab.job_is("running").await;
        let gone = std::time::Instant::now();
        tab.offline(true).await;
        tab.sees("The connection is lost.").await;
        assert!(gone.elapsed().as_secs() < 5, "it was live for {:?} without a network", gone.elapsed());
        // An answer that was on its way may still arrive, and then the page says "Polling" until it asks again.
        tab.until("document.querySelector('.mode').textContent === 'No connection'").await;
        stack.ended(&job).await;
        tab.offline(false).await;
        tab.job_is("completed").await;
        // A request from before may fail only now; the page then asks once more.
        tab.until("!document.querySelector('.lost').checkVisibility()").await;
        assert_eq!(figures(&tab).await[0], "30,000 of 30,000");
    });
}

/// Keeps the page's live connections, each with the messages that it got, for the tests.
const KEEP_SOCKETS: &str = "window.sockets = []; window.WebSocket = class extends WebSocket { \
                            constructor(url) { super(url); this.got = []; window.sockets.push(this); \
                            this.addEventListener('message', ({data}) => this.got.push(JSON.parse(data))); } };";

#[test]
fn a_closed_live_connection_is_opened_again_with_its_subscription_and_an_older_state_is_dropped() {
    let name = "a_closed_live_connection_is_opened_again_with_its_subscription_and_an_older_state_is_dropped";
    on_the_stack(name, async |stack, chromium| {
        let file = stack.upload("text/csv", rows(30_000)).await;
        let body = long_job(&file, "closed");
        let job = stack.create_from(&body).await;
        let tab = chromium.tab(&page(stack)).await;
        tab.until("document.querySelector('job-list')").await;
        tab.before_each_page(KEEP_SOCKETS).await;
        tab.go(&format!("{}?again#/jobs/{job}", page(stack))).await;
        tab.until("document.querySelector('.mode').textContent === 'Live'").await;
        tab.until("sockets[0].got.some(({type}) => type === 'snapshot')").await;
        let _: Value = tab.value("sockets[0].close(), null").await;
        tab.until("sockets[1].got.some(({type}) => type === 'progress')").await;
        assert_eq!(tab.value::<String>("document.querySelector('.mode').textContent").await, "Live");
        tab.job_is("completed").await;
        // A message that was on its way for long.
        let late = "(late => (sockets[1].dispatchEvent(new MessageEvent('message', {data: JSON.stringify(late)})), late.job.version))\
                    (sockets[0].got.find(({type}) => type === 'snapshot'))";
        assert!(tab.value::<u64>(late).await < stack.job(&job).await["version"].as_u64().expect("a version"));
        assert_eq!(
            tab.value::<String>("document.querySelector('job-page state-badge').textContent").await,
            "completed"
        );
        assert_eq!(figures(&tab).await[0], "30,000 of 30,000");
    });
}

#[test]
fn a_long_job_is_watched_in_bounded_memory() {
    on_the_stack("a_long_job_is_watched_in_bounded_memory", async |stack, chromium| {
        let count: usize =
            std::env::var("ROWMILL_BROWSER_ROWS").map_or(1_000_000, |text| text.parse().expect("a number"));
        // Every tenth row fails, so that there is something to list.
        let text = "id,name\n".to_owned()
            + &(0..count)
                .map(|id| format!("{id},name{}\n", if id % 10 == 0 { ",extra" } else { "" }))
                .collect::<String>();
        let announced = json!({ "fileName": "long.csv", "contentType": "text/csv", "size": text.len() });
        let upload: Value = stack.post("/api/uploads").json(&announced).send().await.json();
        let (method, url) = (&upload["upload"]["method"], &upload["upload"]["url"]);
        let mut request = stack.presigned(method.as_str().expect("a method"), url.as_str().expect("a URL"));
        for (name, value) in upload["upload"]["headers"].as_object().expect("headers") {
            request = request.header(name, value.as_str().expect("text"));
        }
        assert!(request.body(text).send().await.expect("the bucket answers").status().is_success());
        let body = json!({ "jobType": "validate", "fileGuid": upload["fileGuid"], "metadata": { "fileName": "measurements.csv" } });
        let job = stack.create_from(&body).await;

        let tab = chromium.tab(&job_page(stack, &job)).await;
        let list = chromium.tab(&page(stack)).await;
        let mut pictured = false;
        let ended = "document.querySelector('job-page state-badge')?.textContent === 'some failed'";
        loop {
            let heap = tab.heap_bytes().await.max(list.heap_bytes().await);
            assert!(heap < 100.0 * 1024.0 * 1024.0, "the page holds {heap} bytes");
            let elements: usize = tab.value("document.querySelectorAll('*').length").await;
            assert!(elements < 2000, "{elements} elements");
            let plotted: usize = tab
                .value("(document.querySelector('rate-plot path.line')?.getAttribute('d') ?? '').split('L').length")
                .await;
            assert!(plotted <= 121, "{plotted} points");
            if !pictured && list.value("document.querySelectorAll('job-list tbody tr').length > 2").await {
                pictured = true;
                list.picture("jobs.png").await;
            }
            if tab.value(ended).await {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        assert_eq!(figures(&tab).await[2].replace(',', ""), count.div_ceil(10).to_string());
        println!("{count} rows, heap {:.1} MB", tab.heap_bytes().await / 1e6);
    });
}

#[test]
fn a_gateway_serves_the_page_too() {
    on_the_stack("a_gateway_serves_the_page_too", async |stack, chromium| {
        let tab = chromium.tab(&format!("{}/#/new", stack.gateway_url().await)).await;
        tab.choose("Type", "validate").await;
        tab.choose_files(&[&crate::stack::data("unicode.csv")]).await;
        tab.completes_job().await;
        // The stack behind the gateway pushes.
        tab.until("document.querySelector('.mode').textContent === 'Live'").await;
        let job = job_over(stack, rows(3), "three.csv", "validate", json!({})).await;
        tab.press("Jobs").await;
        tab.until(&format!("document.querySelector('job-list a[href=\"#/jobs/{job}\"]')")).await;
    });
}
