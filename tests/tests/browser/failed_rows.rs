//! Failed rows: shown, corrected and run again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::new_job::figures;
use crate::reach::{axe, finds_nothing};
use crate::stack::{job_over, job_page, on_the_stack};

/// A file of 900 people, every third of whom has no number as age: 300 failed rows.
fn people() -> (String, Value) {
    let rows = (1..=900).map(|id| {
        let age = if id % 3 == 0 { format!("age {id}") } else { (20 + id % 60).to_string() };
        format!("{id},\"Person, {id}\",{age},=NL\n")
    });
    let text = format!("id,name,age,country\n{}", rows.collect::<String>());
    let schema = json!({ "type": "object", "properties": { "age": { "type": "integer" } } });
    (text, json!({ "dataset": "people-of-the-page", "key": "id", "schema": schema }))
}

#[test]
fn three_hundred_failed_rows_are_corrected_on_the_page_and_run_again() {
    on_the_stack("three_hundred_failed_rows_are_corrected_on_the_page_and_run_again", async |stack, chromium| {
        let (text, params) = people();
        let job = job_over(stack, text, "people.csv", "import", params).await;
        let tab = chromium.tab(&job_page(stack, &job)).await;
        tab.job_is("some failed").await;
        tab.until("document.querySelectorAll('failed-rows tbody tr').length === 50").await;
        // The wrong cell is marked, and told to a screen reader.
        let marked: Vec<String> =
            tab.value("[...document.querySelectorAll('failed-rows td.bad')].map(one => one.textContent)").await;
        assert_eq!((marked.len(), marked[0].as_str()), (50, "Wrong: age 3"));
        // A browser saves the results under the name of the file.
        let link = "decodeURIComponent(document.querySelector('job-files a').href).includes('filename=\"people-failed-rows.csv\"')";
        tab.until(link).await;
        tab.picture("job.png").await;

        tab.press("Correct rows").await;
        for page in 0..6 {
            tab.until(&format!("document.querySelector('failed-rows tbody tr')?.dataset.row === '{}'", page * 150 + 3))
                .await;
            let _: Value = tab.value("document.querySelector('failed-rows [aria-invalid]').focus(), null").await;
            for row in 0..50 {
                let _: Value = tab.value("document.activeElement.select(), null").await;
                tab.insert(&(page * 50 + row).to_string()).await;
                tab.key("Enter").await;
            }
            if page == 0 {
                tab.picture("correct-rows.png").await;
            }
            if page < 5 {
                tab.press("Next").await;
            }
        }
        tab.sees("300 of 300 failed rows corrected").await;
        tab.press("Redrive with corrections").await;
        tab.job_is("completed").await;
        assert_eq!(figures(&tab).await, ["900 of 900", "900", "0", "0"]);
        tab.until("document.querySelector('failed-rows .panel').hidden").await;
        let shown = stack.job(&job).await;
        assert_eq!((&shown["attempt"], &shown["itemsSucceeded"]), (&json!(2), &json!(900)));
        let records: BTreeMap<String, Value> = stack.record_fields("people-of-the-page").await;
        assert_eq!(records["3"], json!({ "id": "3", "name": "Person, 3", "age": 0, "country": "=NL" }));
        assert_eq!(records["900"]["age"], json!(299));
    });
}

#[test]
fn a_row_of_json_is_corrected_as_text_and_others_keep_their_failure() {
    on_the_stack("a_row_of_json_is_corrected_as_text_and_others_keep_their_failure", async |stack, chromium| {
        let text = "{\"a\": 1}\n{\"a\": \"x\"}\n{\"a\":\n".to_owned();
        let schema = json!({ "properties": { "a": { "type": "integer" } } });
        let params = json!({ "format": "jsonl", "schema": schema });
        let job = job_over(stack, text, "a.jsonl", "validate", params).await;
        let tab = chromium.tab(&job_page(stack, &job)).await;
        tab.until("document.querySelector('failed-rows mark')?.textContent === '\"a\"'").await;
        // Why rows failed is counted.
        let causes =
            "[...document.querySelectorAll('job-files tbody tr')].map(row => row.cells[3].textContent).sort().join()";
        tab.until(&format!("{causes} === ',type'")).await;
        finds_nothing(&tab, &axe().await, "the causes of failed rows").await;
        // Each shows its rows.
        let rows = "[...document.querySelectorAll('failed-rows tbody tr')].map(row => row.dataset.row).join()";
        let show = "[...document.querySelectorAll('job-files tbody tr')].find(row => row.cells[3].textContent === 'RULE').querySelector('button').click(), null";
        for (rule, shown) in [("", "3"), ("type", "2")] {
            let _: Value = tab.value(&show.replace("RULE", rule)).await;
            tab.until(&format!("{rows} === '{shown}'")).await;
        }
        tab.sees("only schema_violation, a, type").await;
        finds_nothing(&tab, &axe().await, "the rows of a cause").await;
        tab.press("Show all").await;
        tab.until(&format!("{rows} === '2,3'")).await;
        tab.press("Correct rows").await;
        let write = "Object.assign(document.querySelectorAll('failed-rows textarea')[INDEX], {value: VALUE})\
                     .dispatchEvent(new Event('input', {bubbles: true}))";
        let _: Value = tab.value(&write.replace("INDEX", "1").replace("VALUE", "'[1]'")).await;
        tab.press("Redrive with corrections").await;
        tab.sees("Row 3 is not a JSON object.").await;
        let _: Value = tab.value(&write.replace("INDEX", "1").replace("VALUE", "'{\"a\":'")).await;
        let long = "'{\"a\": 12345678901234567890}'";
        let _: Value = tab.value(&write.replace("INDEX", "0").replace("VALUE", long)).await;
        tab.press("Redrive with corrections").await;
        let attempt =
            "[...document.querySelectorAll('.figures dt')].findIndex(label => label.textContent === 'Attempt')";
        tab.until(&format!("document.querySelectorAll('.figures dd')[{attempt}].textContent === '2'")).await;
        tab.job_is("some failed").await;
        assert_eq!(figures(&tab).await, ["3 of 3", "2", "1", "0"]);
        tab.until("document.querySelectorAll('job-files tbody tr').length === 1").await;
        let _: Value = tab.value("document.querySelector('job-files tbody button:last-child').click(), null").await;
        tab.until(&format!("document.querySelectorAll('.figures dd')[{attempt}].textContent === '3'")).await;
        tab.job_is("some failed").await;
    });
}
