//! A headless Chromium, and its tabs as a person uses them.

#![expect(deprecated, reason = "older versions of Chromium do not have the successor of `emulateNetworkConditions`")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chromiumoxide::cdp::browser_protocol::dom::SetFileInputFilesParams;
use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams,
};
use chromiumoxide::cdp::browser_protocol::input::InsertTextParams;
use chromiumoxide::cdp::browser_protocol::network::EmulateNetworkConditionsParams;
use chromiumoxide::cdp::browser_protocol::page::SetBypassCspParams;
use chromiumoxide::cdp::browser_protocol::target::CreateTargetParams;
use chromiumoxide::cdp::js_protocol::heap_profiler::CollectGarbageParams;
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, GetHeapUsageParams};
use chromiumoxide::page::ScreenshotParams;
use chromiumoxide::{Browser, BrowserConfig, Page};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Maximum time for anything on the page.
const PATIENCE: Duration = Duration::from_secs(120);

/// Longest time between two looks of the library for commands.
const AWAKE: Duration = Duration::from_millis(20);

/// The names of the executable, in the order of preference.
const EXECUTABLES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// Set to `1`, it makes a missing Chromium a failure.
const REQUIRED: &str = "ROWMILL_REQUIRE_BROWSER";

/// Set to `1`, it makes the tests write their screenshots into `docs/images`.
const SCREENSHOTS: &str = "ROWMILL_WRITE_SCREENSHOTS";

/// The executable; `None` if there is none, after a line that says which test is skipped.
///
/// # Panics
/// If there is none, and there must be one.
pub fn chromium(test: &str) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let paths = EXECUTABLES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = paths.into_iter().find(|path| path.is_file());
    if found.is_none() {
        let how = "no Chromium is on the PATH; to install it: apt-get install chromium";
        assert!(std::env::var_os(REQUIRED).is_none_or(|value| value != "1"), "{test}: {how}");
        eprintln!("skipped: {test}: {how}");
    }
    found
}

/// A browser. It ends when this value is dropped.
pub struct Chromium {
    browser: Browser,
    handler: JoinHandle<()>,
    _profile: TempDir,
}

impl Chromium {
    pub async fn launch(executable: &Path) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let config = BrowserConfig::builder().chrome_executable(executable).user_data_dir(profile.path());
        let config = config.request_timeout(Duration::from_secs(60)).arg("disable-dev-shm-usage");
        // Chromium refuses its own sandbox to root, as in a container.
        let config = if rustix::process::geteuid().is_root() { config.no_sandbox() } else { config };
        let (browser, mut events) = Browser::launch(config.build().expect("a configuration")).await.expect("it starts");
        // The library misses a command now and then until something else wakes it.
        let handler =
            tokio::spawn(async move { while !matches!(tokio::time::timeout(AWAKE, events.next()).await, Ok(None)) {} });
        Self { browser, handler, _profile: profile }
    }

    /// A tab. All tabs of a browser are those of one person.
    pub async fn tab(&self, url: &str) -> Tab {
        // `new_page` and `goto` may wait for ever for an event that has passed.
        let target = self.browser.execute(CreateTargetParams::new(url)).await.expect("a tab").result.target_id;
        let started = Instant::now();
        let page = loop {
            match self.browser.get_page(target.clone()).await {
                Ok(page) => break page,
                Err(error) => assert!(started.elapsed() < PATIENCE, "{url}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let tab = Tab { page };
        tab.resize(1280, 860).await;
        tab
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.handler.abort();
    }
}

pub struct Tab {
    page: Page,
}

impl Tab {
    /// Goes to another address, which is not a part of this page.
    pub async fn go(&self, url: &str) {
        let _: Value = self.value(&format!("window.leaving = true, location.assign({}), null", quoted(url))).await;
        self.until("!window.leaving && document.readyState === 'complete'").await;
    }

    /// Runs this script before those of every page that this tab goes to from now on.
    pub async fn before_each_page(&self, script: &str) {
        self.page.evaluate_on_new_document(script).await.expect("a script");
    }

    /// The value of an expression, awaited.
    pub async fn value<T: DeserializeOwned>(&self, expression: &str) -> T {
        let value = self.try_value(expression).await.unwrap_or_else(|error| panic!("{expression}: {error}"));
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{expression} is {value}: {error}"))
    }

    async fn try_value(&self, expression: &str) -> Result<Value, String> {
        let evaluation =
            EvaluateParams::builder().expression(expression).await_promise(true).return_by_value(true).build()?;
        let answer = self.page.execute(evaluation).await.map_err(|error| error.to_string())?;
        match &answer.result.exception_details {
            Some(thrown) => Err(format!("{thrown:?}")),
            None => Ok(answer.result.result.value.clone().unwrap_or_default()),
        }
    }

    /// Waits until an expression, awaited, is true. What throws, because something is not there yet, is not.
    pub async fn until(&self, expression: &str) {
        let started = Instant::now();
        let truth = format!("(async () => Boolean(await ({expression})))()");
        while self.try_value(&truth).await != Ok(Value::Bool(true)) {
            if started.elapsed() > PATIENCE {
                let text: String = self.value("document.body.innerText").await;
                panic!("it never holds that {expression}:\n{text}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a text on the page.
    pub async fn sees(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", quoted(text))).await;
    }

    /// Presses the button or link with this text, once it can be pressed.
    pub async fn press(&self, text: &str) {
        let find = format!(
            "[...document.querySelectorAll('button, a, [role=button], summary')].find(one => one.checkVisibility() && \
             !one.disabled && one.textContent.trim() === {})",
            quoted(text)
        );
        self.until(&find).await;
        let _: Value = self.value(&format!("{find}.click()")).await;
    }

    /// Waits for this state of the job that is shown.
    pub async fn job_is(&self, state: &str) {
        self.until(&format!("document.querySelector('job-page state-badge')?.textContent === '{state}'")).await;
    }

    /// Starts the job of the form, and waits until it has completed.
    pub async fn completes_job(&self) {
        self.press("Start job").await;
        self.job_is("completed").await;
    }

    /// Writes into the control with this label, as by typing.
    pub async fn write(&self, label: &str, text: &str) {
        let find = labelled(label);
        self.until(&find).await;
        let _: Value = self.value(&format!("{find}.focus(), {find}.select?.(), null")).await;
        self.insert(text).await;
    }

    /// Chooses an option of the list with this label.
    pub async fn choose(&self, label: &str, value: &str) {
        let (find, value) = (labelled(label), quoted(value));
        self.until(&find).await;
        let change = format!(
            "(list => (list.value = {value}, list.dispatchEvent(new Event('change', {{bubbles: true}})), list.value === {value}))({find})"
        );
        assert!(self.value::<bool>(&change).await, "{label} has no option {value}");
    }

    /// Types a text where the focus is.
    pub async fn insert(&self, text: &str) {
        self.page.execute(InsertTextParams::new(text)).await.expect("it is typed");
    }

    /// Presses a key where the focus is.
    pub async fn key(&self, key: &str) {
        let focused = self.page.find_element(":focus").await.expect("something has the focus");
        focused.press_key(key).await.expect("a key");
    }

    /// Puts files into the input for files.
    pub async fn choose_files(&self, files: &[&Path]) {
        self.until("document.querySelector('input[type=file]')").await;
        let input = self.page.find_element("input[type=file]").await.expect("an input");
        let files: Vec<String> = files.iter().map(|file| file.to_str().expect("UTF-8").to_owned()).collect();
        let files = SetFileInputFilesParams::builder().files(files).backend_node_id(input.backend_node_id).build();
        self.page.execute(files.expect("files")).await.expect("they are chosen");
    }

    pub async fn resize(&self, width: i64, height: i64) {
        let narrow = width < 600;
        let size = SetDeviceMetricsOverrideParams::new(width, height, 1.0, narrow);
        self.page.execute(size).await.expect("a size");
    }

    pub async fn prefer_dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let media = SetEmulatedMediaParams::builder().feature(MediaFeature::new("prefers-color-scheme", value)).build();
        self.page.execute(media).await.expect("a scheme");
    }

    /// Takes the network away, or gives it back.
    pub async fn offline(&self, offline: bool) {
        let conditions = EmulateNetworkConditionsParams::new(offline, 0.0, -1.0, -1.0);
        self.page.execute(conditions).await.expect("a network");
    }

    /// Lets the page send no more than so many bytes a second.
    pub async fn slow(&self, bytes_per_second: f64) {
        let conditions = EmulateNetworkConditionsParams::new(false, 0.0, -1.0, bytes_per_second);
        self.page.execute(conditions).await.expect("a network");
    }

    /// Bytes that the page's scripts hold.
    pub async fn heap_bytes(&self) -> f64 {
        self.page.execute(CollectGarbageParams::default()).await.expect("a collection");
        self.page.execute(GetHeapUsageParams::default()).await.expect("figures").result.used_size
    }

    /// The result of this script when it is run beside the page's own.
    pub async fn with_script<T: DeserializeOwned>(&self, script: &str, expression: &str) -> T {
        self.page.execute(SetBypassCspParams::new(true)).await.expect("no policy");
        let _: Value = self.value(&format!("{script}; null")).await;
        self.value(expression).await
    }

    /// Writes a picture of the page into `docs/images`, if somebody asked for it.
    pub async fn picture(&self, name: &str) {
        if std::env::var_os(SCREENSHOTS).is_none_or(|value| value != "1") {
            return;
        }
        let _: Value = self.value("scrollTo(0, 0), document.activeElement?.blur(), null").await;
        // What moves has come to rest.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let bytes = self.page.screenshot(ScreenshotParams::builder().build()).await.expect("a picture");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images").join(name);
        std::fs::write(path, bytes).expect("a file");
    }
}

/// A text as JavaScript.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The control with this label.
fn labelled(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('label')].find(one => one.checkVisibility() && one.textContent === {})?.control",
        quoted(label)
    )
}
