//! Time from the start of a function's process to its first poll: `cargo run --release --bin init_times`.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rowmill::template::{Function, Template};
use serde_json::{Value, json};

const USAGE: &str = "init_times [--folder FOLDER] [--runs COUNT] [--only NAMES] [--json]

Starts each function of the template COUNT (20) times against a Lambda Runtime API that never has an invocation, in turns,
and prints the medians. FOLDER (target/release) has the binaries; NAMES are some of them, with commas between them.";

/// A process that has not asked for an invocation by then has a fault.
const LONGEST: Duration = Duration::from_secs(10);

/// The first request of a function.
const FIRST_POLL: &str = "GET /2018-06-01/runtime/invocation/next ";

struct Options {
    folder: PathBuf,
    runs: usize,
    only: Option<Vec<String>>,
    json: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { folder: "target/release".into(), runs: 20, only: None, json: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--folder" => options.folder = arguments.next()?.into(),
                "--runs" => options.runs = arguments.next()?.parse().ok().filter(|runs| *runs > 0)?,
                "--only" => options.only = Some(arguments.next()?.split(',').map(str::to_owned).collect()),
                "--json" => options.json = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// A function, and the environment that the template gives it.
struct Started {
    name: String,
    binary: PathBuf,
    environment: BTreeMap<String, String>,
    times: Vec<Duration>,
}

impl Started {
    fn of(template: &Template, function: Function, folder: &Path) -> Self {
        let document = template.document();
        let variables = [&document["Globals"]["Function"], &document["Resources"][&function.logical_id]["Properties"]];
        let variables = variables.into_iter().filter_map(|of| of["Environment"]["Variables"].as_object()).flatten();
        let environment = variables.map(|(name, value)| (name.clone(), stand_in(document, value))).collect();
        Self { binary: folder.join(&function.package), name: function.package, environment, times: Vec::new() }
    }

    /// The time from the start of a process to its first poll.
    fn start(&self) -> io::Result<Duration> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let began = Instant::now();
        let mut process = Process(
            Command::new(&self.binary)
                .env_clear()
                .envs(&self.environment)
                .envs([
                    ("AWS_LAMBDA_RUNTIME_API", listener.local_addr()?.to_string().as_str()),
                    ("AWS_LAMBDA_FUNCTION_NAME", &self.name),
                    ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
                    ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
                    ("AWS_LAMBDA_LOG_GROUP_NAME", "made-up"),
                    ("AWS_LAMBDA_LOG_STREAM_NAME", "made-up"),
                    ("AWS_REGION", "us-east-1"),
                    ("AWS_ACCESS_KEY_ID", "made-up"),
                    ("AWS_SECRET_ACCESS_KEY", "made-up"),
                ])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()?,
        );
        let request = process.first_request(&listener)?;
        let time = began.elapsed();
        match request.starts_with(FIRST_POLL) {
            true => Ok(time),
            false => Err(io::Error::other(format!("{} asks for something else: {request}", self.name))),
        }
    }

    fn median(&self) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

/// A value for a variable of the environment: the default of a parameter, or a name in place of a resource's.
fn stand_in(document: &Value, value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (value["Ref"].as_str(), value.as_object()) {
        (Some(name), _) => text(document["Parameters"][name].get("Default").unwrap_or(&json!("made-up"))),
        (None, Some(_)) => "https://made-up.example".to_owned(),
        (None, None) => text(value),
    }
}

/// A process that ends with the value.
struct Process(Child);

impl Process {
    /// The beginning of the first request that it sends.
    fn first_request(&mut self, listener: &TcpListener) -> io::Result<String> {
        listener.set_nonblocking(true)?;
        let until = Instant::now() + LONGEST;
        let mut stream = loop {
            match listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                    if let Some(status) = self.0.try_wait()? {
                        return Err(io::Error::other(format!("it ended before its first poll: {status}")));
                    }
                    std::hint::spin_loop();
                }
                accepted => break accepted?.0,
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LONGEST))?;
        let mut request = vec![0; FIRST_POLL.len()];
        stream.read_exact(&mut request)?;
        Ok(String::from_utf8_lossy(&request).into_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn measure(options: &Options) -> Result<Vec<Started>, Box<dyn std::error::Error>> {
    let template = Template::load(Path::new("template.yaml"))?;
    let wanted = |function: &Function| options.only.as_ref().is_none_or(|only| only.contains(&function.package));
    let functions = template.functions()?.into_iter().filter(wanted);
    let mut functions: Vec<_> = functions.map(|function| Started::of(&template, function, &options.folder)).collect();
    for _ in 0..options.runs {
        for function in &mut functions {
            let time = function.start().map_err(|error| format!("{}: {error}", function.binary.display()))?;
            function.times.push(time);
        }
    }
    Ok(functions)
}

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let functions = match measure(&options) {
        Ok(functions) => functions,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let rows = functions.iter().map(|function| {
        let bytes = function.binary.metadata().map_or(0, |binary| binary.len());
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let (least, most) = (function.times.iter().min(), function.times.iter().max());
        let [least, most] = [least, most].map(|time| milliseconds(time.copied().unwrap_or_default()));
        (function.name.as_str(), bytes, milliseconds(function.median()), least, most)
    });
    if options.json {
        let rows = rows.map(|(name, bytes, median, least, most)| {
            json!({ "function": name, "bytes": bytes, "medianMs": median, "leastMs": least, "mostMs": most })
        });
        println!("{:#}", json!(rows.collect::<Vec<_>>()));
        return ExitCode::SUCCESS;
    }
    println!("function            MiB  first poll after ms  least to most");
    for (name, bytes, median, least, most) in rows {
        println!("{name:<18}  {:>4.1}  {median:>19.1}  {least:.1} to {most:.1}", bytes as f64 / f64::from(1 << 20));
    }
    ExitCode::SUCCESS
}
