//! Datasets on the page, and a job that is run again.

use acceptance::local_stack::answer;
use serde_json::{Value, json};

use crate::reach::{axe, finds_nothing};
use crate::stack::{job_over, job_page, on_the_stack};

#[test]
fn a_person_finds_the_records_of_an_import_and_runs_it_again() {
    on_the_stack("a_person_finds_the_records_of_an_import_and_runs_it_again", async |stack, chromium| {
        let rows = (0..130).map(|id| format!("k{id},\"<b>{id}</b>\",{id}\n"));
        let text = format!("id,name,count\n{}", rows.collect::<String>());
        let job =
            job_over(stack, text, "seen.csv", "import", json!({ "dataset": "seen-on-the-page", "key": "id" })).await;
        let tab = chromium.tab(&job_page(stack, &job)).await;
        tab.job_is("completed").await;
        let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
        let facts = "document.querySelector('job-settings dl').innerText.replaceAll('\\n', ' ')";
        tab.until(&format!("/key id/.test({facts})")).await;
        finds_nothing(&tab, &axe().await, "the settings of a job").await;

        tab.press("seen-on-the-page").await;
        let keys = "[...document.querySelectorAll('dataset-page tbody tr')].map(row => row.cells[0].textContent)";
        tab.until(&format!("{keys}.length === 50")).await;
        for more in [100, 130] {
            tab.press("More").await;
            tab.until(&format!("{keys}.length === {more}")).await;
        }
        tab.until(&format!("new Set({keys}).size === 130")).await;
        tab.sees("130 records, in no order").await;
        finds_nothing(&tab, &axe().await, "the records of a dataset").await;
        tab.write("Keys that begin with", "k12").await;
        tab.press("Show").await;
        tab.until(&format!("{keys}.sort().join() === 'k12,k120,k121,k122,k123,k124,k125,k126,k127,k128,k129'")).await;
        // Cells are text, also those that look like markup.
        let row: Vec<String> = tab
            .value("[...[...document.querySelectorAll('dataset-page tbody tr')].find(row => row.cells[0].textContent === 'k12').cells].map(cell => cell.textContent)")
            .await;
        let columns: Vec<String> =
            tab.value("[...document.querySelectorAll('dataset-page th')].map(cell => cell.textContent)").await;
        let place = |name: &str| columns.iter().position(|column| column == name).expect("a column");
        assert_eq!([&row[place("id")], &row[place("name")], &row[place("count")]], ["k12", "<b>12</b>", "12"]);
        assert!(row[place("Written by")].ends_with("row 13"), "{row:?}");
        tab.write("Keys that begin with", "none").await;
        tab.press("Show").await;
        tab.sees("No record found.").await;

        tab.press("Datasets").await;
        tab.until("[...document.querySelectorAll('dataset-list tbody a')].some(link => link.textContent === 'seen-on-the-page')")
            .await;
        finds_nothing(&tab, &axe().await, "the list of datasets").await;

        let _: Value = tab.value(&format!("location.hash = '#/jobs/{job}', null")).await;
        tab.job_is("completed").await;
        let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
        tab.press("Run again").await;
        tab.until(&format!("location.hash.startsWith('#/jobs/') && !location.hash.includes('{job}')")).await;
        tab.job_is("completed").await;
        let hash: String = tab.value("location.hash").await;
        let again = stack.job(hash.rsplit('/').next().expect("a guid")).await;
        assert_eq!((&again["jobType"], &again["itemsSucceeded"]), (&json!("import"), &json!(130)));
        // The records are those of the later job now.
        let _: Value = tab.value("location.hash = '#/datasets/seen-on-the-page', null").await;
        let by = format!(
            "document.querySelector('dataset-page td a[title=\"{}\"]')",
            again["jobGuid"].as_str().expect("a guid")
        );
        tab.until(&by).await;

        // What a dry run would change, and then does.
        let text = "id,name,count\nk1,another,1\nk2,<b>2</b>,2\nnew,x,0\n".to_owned();
        let params = json!({ "dataset": "seen-on-the-page", "key": "id", "dryRun": true });
        let dry = job_over(stack, text, "next.csv", "import", params).await;
        let _: Value = tab.value(&format!("location.hash = '#/jobs/{dry}', null")).await;
        tab.job_is("completed").await;
        let changes = "document.querySelector('job-files .changes')?.innerText.replaceAll('\\n', ' ')";
        tab.until(&format!("/create 1 .*update 1 .*unchanged 1 .*Field name 1/.test({changes})")).await;
        finds_nothing(&tab, &axe().await, "a what-if").await;
        let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
        tab.press("Run for real").await;
        tab.until(&format!("location.hash.startsWith('#/jobs/') && !location.hash.includes('{dry}')")).await;
        tab.job_is("completed").await;
        assert_eq!(stack.record_fields("seen-on-the-page").await["k1"]["name"], "another");

        // What its file has not got is counted, removed, and brought back.
        let _: Value = tab.value("window.confirm = () => true, null").await;
        let import: String = tab.value("location.hash").await;
        let mut last = import.clone();
        for (button, shown, left) in [
            ("Count missing records", "Missing 128", 131),
            ("Run for real", "Missing 128", 3),
            ("Undo", "Reversed 128 Kept 0", 131),
        ] {
            let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
            tab.press(button).await;
            tab.until(&format!("location.hash.startsWith('#/jobs/') && location.hash !== '{last}'")).await;
            tab.job_is("completed").await;
            finds_nothing(&tab, &axe().await, button).await;
            last = tab.value("location.hash").await;
            // The page may show the job before until this one is there.
            let ended = stack.ended(last.rsplit('/').next().expect("a guid")).await;
            assert_eq!(ended["outcome"], "succeeded", "{ended}");
            let (_, page) = answer(stack.get("/api/datasets/seen-on-the-page/records?limit=1000")).await;
            assert_eq!(page["records"].as_array().map(Vec::len), Some(left), "{button}");
            tab.until(&format!("/{shown}/.test({changes})")).await;
        }
        let _: Value = tab.value(&format!("location.hash = '{import}', null")).await;
        tab.until(&format!("location.hash === '{import}'")).await;
        tab.job_is("completed").await;

        // And is undone.
        let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
        let before: String = tab.value("location.hash").await;
        tab.press("Undo").await;
        tab.until(&format!("location.hash.startsWith('#/jobs/') && location.hash !== '{before}'")).await;
        tab.job_is("completed").await;
        tab.until(&format!("/Reversed 3 Kept 0/.test({changes})")).await;
        finds_nothing(&tab, &axe().await, "an undo").await;
        let _: Value = tab.value("location.hash = '#/datasets/seen-on-the-page', null").await;
        tab.until("document.querySelector('dataset-page table')?.innerText.includes('k1')").await;
        let shown: String = tab.value("document.querySelector('dataset-page').innerText").await;
        assert!(!shown.contains("another") && !shown.contains("new"), "{shown}");

        // It is deleted, and then the deletion.
        tab.press("Delete dataset").await;
        tab.until("location.hash.startsWith('#/jobs/')").await;
        tab.job_is("completed").await;
        assert!(stack.record_fields("seen-on-the-page").await.is_empty());
        let deletion: String = tab.value("location.hash.split('/').pop()").await;
        let _: Value = tab.value("document.querySelector('job-settings summary').click(), null").await;
        finds_nothing(&tab, &axe().await, "the settings of an ended job").await;
        tab.press("Delete").await;
        tab.until("location.hash === '#/jobs'").await;
        let gone = stack.get(&format!("/api/jobs/{deletion}")).send().await;
        assert_eq!(gone.status.as_u16(), 404);

        let _: Value = tab.value("location.hash = '#/datasets/nobody-has-written-to-it', null").await;
        tab.sees("There is no dataset `nobody-has-written-to-it`.").await;
    });
}
