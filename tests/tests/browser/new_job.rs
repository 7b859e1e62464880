//! Uploads and new jobs.

use std::io::Write as _;
use std::path::PathBuf;

use acceptance::local_stack::answer;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::Tab;
use crate::stack::{data, folder, on_the_stack, page};

/// Notes every value of the job's bar, which the page keeps for the tests to read.
const WATCH: &str = "window.percents = [], new MutationObserver(() => { const bar = document.querySelector('job-page [role=progressbar]'); \
                     if (bar) window.percents.push(Number(bar.getAttribute('aria-valuenow'))); })\
                     .observe(document.body, {subtree: true, childList: true, attributes: true}), null";

#[test]
fn a_file_is_uploaded_on_the_page_and_its_job_is_followed_to_the_end() {
    on_the_stack("a_file_is_uploaded_on_the_page_and_its_job_is_followed_to_the_end", async |stack, chromium| {
        let tab = chromium.tab(&page(stack)).await;
        tab.press("New job").await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.write("Dataset", "on-the-page").await;
        tab.write("Key", "codepoint").await;
        tab.sees("uploaded, 100%").await;
        let _: Value = tab.value(WATCH).await;
        tab.completes_job().await;
        assert_eq!(figures(&tab).await, ["11,231 of 11,231", "11,231", "0", "0"]);
        let percents: Vec<u8> = tab.value("window.percents").await;
        assert!(percents.is_sorted() && percents.last() == Some(&100), "{percents:?}");
        assert_eq!(tab.value::<String>("document.querySelector('h1').textContent").await, "unicode.csv");
        assert_eq!(stack.records("on-the-page").await.len(), 11_231);

        // The list knows it too, and finds it by its state and type.
        tab.press("Jobs").await;
        tab.choose("Type", "import").await;
        tab.choose("Status", "completed").await;
        tab.until("[...document.querySelectorAll('job-list .name')].some(one => one.textContent === 'unicode.csv')")
            .await;
        tab.choose("Status", "waiting").await;
        tab.sees("No job is like this.").await;
    });
}

/// Items, succeeded, failed and skipped.
pub async fn figures(tab: &Tab) -> Vec<String> {
    tab.value("[...document.querySelectorAll('.figures dd')].slice(0, 4).map(one => one.textContent)").await
}

#[test]
fn a_field_that_is_wrong_is_told_and_nothing_is_started() {
    on_the_stack("a_field_that_is_wrong_is_told_and_nothing_is_started", async |stack, chromium| {
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.sees("uploaded, 100%").await;
        tab.press("Start job").await;
        tab.sees("Dataset: ").await;
        tab.write("Dataset", "d").await;
        tab.write("Key", "no-such-column").await;
        tab.press("Start job").await;
        // The API names the field.
        tab.until("document.querySelector('new-job form [role=alert]')?.textContent.includes('no-such-column')").await;
        tab.choose("Type", "validate").await;
        tab.write("Schema", "{").await;
        tab.press("Start job").await;
        tab.sees("Schema is not JSON").await;
    });
}

#[test]
fn a_job_has_the_priority_that_was_chosen_for_it() {
    on_the_stack("a_job_has_the_priority_that_was_chosen_for_it", async |stack, chromium| {
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        tab.choose_files(&[&data("unicode.csv")]).await;
        tab.sees("uploaded, 100%").await;
        tab.choose("Type", "validate").await;
        tab.press("Limits and priority").await;
        tab.choose("Priority", "high").await;
        tab.completes_job().await;
        let shown = "[...document.querySelectorAll('.facts dt')].find(one => one.textContent === 'Priority')\
                     ?.nextElementSibling.textContent";
        assert_eq!(tab.value::<String>(shown).await, "high");
        let job: String = tab.value("location.hash.split('/').pop()").await;
        assert_eq!(stack.job(&job).await["priority"], "high");
        tab.press("Jobs").await;
        tab.until(
            "[...document.querySelectorAll('job-list .type')].some(one => one.textContent.includes(' · high priority'))",
        )
        .await;
    });
}

#[test]
fn a_job_type_without_input_is_started_without_a_file() {
    on_the_stack("a_job_type_without_input_is_started_without_a_file", async |stack, chromium| {
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        tab.sees("drop them here").await;
        tab.choose("Type", "report").await;
        tab.until("document.querySelector('.files-panel').checkVisibility() === false").await;
        tab.until("document.querySelector('job-params details').checkVisibility() === false").await;
        let _: Value = tab.value("document.querySelector('#dry-run').click(), null").await;
        tab.completes_job().await;
        assert_eq!(figures(&tab).await, ["1 of 1", "1", "0", "0"]);
    });
}

/// A file of 70,000 rows that goes in parts.
fn big_file(name: &str) -> PathBuf {
    std::fs::create_dir_all(folder()).expect("a folder");
    let path = folder().join(name);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    writeln!(file, "id,text").expect("a disk");
    let text = "x".repeat(1000);
    for id in 0..70_000 {
        writeln!(file, "{id},{text}").expect("a disk");
    }
    file.flush().expect("a disk");
    path
}

#[test]
fn a_big_file_goes_in_parts_and_goes_on_after_a_pause() {
    on_the_stack("a_big_file_goes_in_parts_and_goes_on_after_a_pause", async |stack, chromium| {
        let path = big_file("big.csv");
        let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
        // So that there is time to pause.
        tab.slow(10e6).await;
        tab.choose_files(&[&path]).await;
        tab.until("Number(document.querySelector('.file [role=progressbar]')?.getAttribute('aria-valuenow')) > 10")
            .await;
        tab.press("Pause").await;
        tab.sees("paused, ").await;
        let at_pause: u8 =
            tab.value("Number(document.querySelector('.file [role=progressbar]').getAttribute('aria-valuenow'))").await;
        assert!(at_pause < 100);
        tab.slow(-1.0).await;
        tab.press("Resume").await;
        tab.sees("uploaded, 100%").await;
        tab.choose("Type", "validate").await;
        tab.completes_job().await;
        assert_eq!(figures(&tab).await[0], "70,000 of 70,000");
        std::fs::remove_file(path).expect("a file");
    });
}

/// The parts that this page has sent into the bucket.
const SENT: &str = "[...new Set(performance.getEntriesByType('resource').filter(one => one.initiatorType === 'xmlhttprequest')\
                    .map(one => Number(new URL(one.name).searchParams.get('partNumber'))).filter(Boolean))].sort((a, b) => a - b)";

#[test]
fn a_page_that_is_loaded_again_sends_the_missing_parts_of_the_same_file_only() {
    on_the_stack(
        "a_page_that_is_loaded_again_sends_the_missing_parts_of_the_same_file_only",
        async |stack, chromium| {
            let path = big_file("resumed.csv");
            let tab = chromium.tab(&format!("{}#/new", page(stack))).await;
            tab.slow(1e5).await;
            tab.choose_files(&[&path]).await;
            tab.until("JSON.parse(localStorage.getItem('rowmill.uploads') ?? '[]').length === 1").await;
            let kept: Vec<Value> = tab.value("JSON.parse(localStorage.getItem('rowmill.uploads'))").await;
            let upload = format!("/api/uploads/{}", kept[0]["fileGuid"].as_str().expect("a guid"));
            tab.go(&format!("{}?again#/new", page(stack))).await;

            // At this pace none of its parts arrived. These two did.
            let bytes = std::fs::read(&path).expect("a file");
            let (_, signed) = answer(stack.post(&format!("{upload}/parts"))).await;
            let parts = signed["parts"].as_array().expect("parts");
            assert_eq!(parts.len(), 5, "{signed}");
            let part_size = parts[0]["size"].as_u64().and_then(|size| usize::try_from(size).ok()).expect("a size");
            for (part, bytes) in parts.iter().zip(bytes.chunks(part_size)).skip(1).step_by(2) {
                assert_eq!(stack.send_signed(part, bytes.to_vec()).await, StatusCode::OK);
            }

            tab.slow(-1.0).await;
            tab.choose_files(&[&path]).await;
            tab.sees("uploaded, 100%").await;
            let (_, stored) = answer(stack.get(&upload)).await;
            assert_eq!(stored["status"], "ready", "the same upload: {stored}");
            let sent: Vec<u64> = tab.value(SENT).await;
            // On a busy machine a part that the first page had begun to send may arrive after all.
            assert!(!sent.is_empty() && sent.iter().all(|part| [1, 3, 5].contains(part)), "{sent:?}");
            let kept: Value = tab.value("JSON.parse(localStorage.getItem('rowmill.uploads'))").await;
            assert_eq!(kept, json!([]), "nothing is left to resume");

            tab.choose("Type", "validate").await;
            tab.completes_job().await;
            assert_eq!(figures(&tab).await[0], "70,000 of 70,000");
            std::fs::remove_file(path).expect("a file");
        },
    );
}
