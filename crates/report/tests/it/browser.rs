//! A browser without a window, remote-controlled: Chromium, spoken to through two pipes in its DevTools protocol.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Browser {
    commands: File,
    answers: BufReader<File>,
    process: Child,
    session: Option<String>,
    last_id: u64,
    /// What the page complained about.
    pub complaints: Vec<String>,
    loaded: bool,
    // Goes away after the process that uses it.
    folder: TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["commands", "answers"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args(&pipes).status().unwrap();
        assert!(made.success());
        // Chromium wants its pipes as descriptors 3 and 4, which only a shell can arrange without unsafe code.
        let process = Command::new("sh")
            .args(["-c", "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                          --user-data-dir=\"$PWD/profile\" --remote-debugging-pipe 3<commands 4>answers 2>log"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // In the order in which the shell opens them, since opening a pipe waits for the other side.
        let commands = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let answers = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Self {
            commands,
            answers,
            process,
            session: None,
            last_id: 0,
            complaints: Vec::new(),
            loaded: false,
            folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Shows a page and waits until it is there.
    pub fn show(&mut self, html: &str) {
        let path = self.folder.path().join("page.html");
        std::fs::write(&path, html).unwrap();
        self.loaded = false;
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", path.display())}),
        );
        while !self.loaded {
            self.read();
        }
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// As on `paper` or on a `screen`.
    pub fn medium(&mut self, medium: &str) {
        self.call("Emulation.setEmulatedMedia", json!({"media": medium}));
    }

    /// The value of an expression.
    pub fn value(&mut self, script: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": script, "returnByValue": true}),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{script}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Clicks with the mouse into the middle of (the first line of) the first element that fits.
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.middle(selector);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Moves the mouse over the first element that fits.
    pub fn point_at(&mut self, selector: &str) {
        let (x, y) = self.middle(selector);
        self.call(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseMoved", "x": x, "y": y}),
        );
    }

    fn middle(&mut self, selector: &str) -> (f64, f64) {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        );
        let place = self.value(&script);
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    /// Presses a key that is a character, or `Escape`.
    pub fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyDown", "key": key, "text": text}),
        );
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        );
    }

    /// A picture of the whole page, for people to look at.
    pub fn picture(&mut self, path: &Path) {
        let picture = self.call(
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": true}),
        );
        let mut decoder = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(path).unwrap())
            .spawn()
            .unwrap();
        let mut input = decoder.stdin.take().unwrap();
        input
            .write_all(picture["data"].as_str().unwrap().as_bytes())
            .unwrap();
        drop(input);
        assert!(decoder.wait().unwrap().success());
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands
            .write_all(message.to_string().as_bytes())
            .unwrap();
        self.commands.write_all(b"\0").unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == json!(self.last_id) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; what happened to the page is remembered.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).unwrap();
        if bytes.pop().is_none() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            panic!("the browser has gone: {log}");
        }
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded = true,
            Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Page.javascriptDialogOpening") => {
                self.complaints.push(message["params"].to_string());
            }
            _ => {}
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already, or in the middle of something that nobody waits for any more.
        let _ = self
            .commands
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.process.wait();
    }
}
