//! A snapshot on a terminal.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};

use super::text::{
    JOB_COLUMNS, QUEUE_COLUMNS, WORKER_COLUMNS, head_line, job_cells, queue_cells, rates_line, refusals_line,
    worker_cells,
};
use super::{Queue, Rates, Snapshot};
use crate::terminal::escape_controls;

/// Lines of the head, and of the message and the keys at the foot.
const HEAD_AND_FOOT: [u16; 3] = [3, 1, 1];

/// The fewest lines that the jobs have, with their border and heading.
const JOBS_LEAST: u16 = 4;

/// The border and the heading of a table.
const FRAME: u16 = 3;

/// The most workers that are shown, if the screen is high enough.
const WORKERS_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Screen {
    snapshot: Option<Snapshot>,
    rates: Rates,
    /// Why the last snapshot could not be taken.
    failure: Option<String>,
    selected: TableState,
}

impl Screen {
    /// Shows a newer snapshot. The selected job stays selected where it is still active.
    pub fn show(&mut self, snapshot: Snapshot) {
        let job_at = |snapshot: &Snapshot, place: usize| snapshot.jobs.get(place).map(|job| job.job_guid);
        let selected = self.selected.selected();
        let job = self.snapshot.as_ref().and_then(|before| job_at(before, selected?));
        self.rates = Rates::between(self.snapshot.as_ref(), &snapshot);
        let last = snapshot.jobs.len().checked_sub(1);
        let found = job.and_then(|job| snapshot.jobs.iter().position(|other| other.job_guid == job));
        self.selected.select(found.or_else(|| Some(selected?.min(last?))));
        (self.snapshot, self.failure) = (Some(snapshot), None);
    }

    /// Says why there is no newer snapshot. The one before stays.
    pub fn fail(&mut self, reason: &str) {
        self.failure = Some(escape_controls(reason));
    }

    /// Follows a key. Returns whether to go on: `q`, Escape and Ctrl-C quit.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let jobs = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.jobs.len());
        let place = self.selected.selected();
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Down if jobs > 0 => {
                self.selected.select(Some(place.map_or(0, |place| (place + 1).min(jobs - 1))));
            }
            KeyCode::Up if jobs > 0 => self.selected.select(Some(place.map_or(0, |place| place.saturating_sub(1)))),
            _ => {}
        }
        true
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let Some(snapshot) = &self.snapshot else {
            let reason = self.failure.as_deref().unwrap_or("Reading the stack...");
            frame.render_widget(Paragraph::new(reason), frame.area());
            return;
        };
        let [head, detail, foot] = HEAD_AND_FOOT;
        let lines = frame.area().height.saturating_sub(head + FRAME + JOBS_LEAST + detail + foot);
        let queues = fitting(&snapshot.queues, lines.into());
        let queue_lines = u16::try_from(queues.len()).unwrap_or(u16::MAX);
        let worker_lines = lines_of_workers(snapshot.workers().len(), lines.saturating_sub(queue_lines));
        let queue_lines = queue_lines.saturating_add(FRAME);
        let [head, middle, jobs, workers, detail, foot] = Layout::vertical([
            Constraint::Length(head),
            Constraint::Length(queue_lines),
            Constraint::Min(JOBS_LEAST),
            Constraint::Length(worker_lines),
            Constraint::Length(detail),
            Constraint::Length(foot),
        ])
        .areas(frame.area());
        let lines = [
            head_line(snapshot),
            format!("rates: {}", rates_line(self.rates)),
            format!("refused: {}", refusals_line(snapshot)),
        ];
        frame.render_widget(Paragraph::new(lines.map(Line::from).to_vec()), head);
        frame.render_widget(queue_table(&queues, snapshot.queues.len() - queues.len()), middle);
        draw_jobs(frame, jobs, snapshot, &mut self.selected);
        if worker_lines > 0 {
            frame.render_widget(worker_table(snapshot), workers);
        }
        let job = self.selected.selected().and_then(|place| snapshot.jobs.get(place)?.view.as_ref());
        let message = job.map(|view| escape_controls(&view.message)).unwrap_or_default();
        frame.render_widget(Paragraph::new(message), detail);
        let keys = "q quits   ↑ ↓ select a job".to_owned();
        let foot_text = self.failure.as_ref().map_or(keys, |reason| format!("not up to date: {reason}"));
        frame.render_widget(Paragraph::new(foot_text).style(Style::new().add_modifier(Modifier::DIM)), foot);
    }
}

fn heading<'a>(columns: impl IntoIterator<Item = &'a str>) -> Row<'a> {
    Row::new(columns.into_iter().map(Cell::from)).style(Style::new().add_modifier(Modifier::BOLD))
}

/// The queues that fit into so many lines: all of them, or without some of the empty ones, the last first.
fn fitting(queues: &[Queue], lines: usize) -> Vec<&Queue> {
    let mut extra = queues.len().saturating_sub(lines);
    let fits = |queue: &&Queue| {
        let is_left_out = extra > 0 && queue.waiting + queue.in_flight == 0;
        extra -= usize::from(is_left_out);
        !is_left_out
    };
    let mut fitting: Vec<&Queue> = queues.iter().rev().filter(fits).collect();
    fitting.reverse();
    fitting
}

fn queue_table(queues: &[&Queue], left_out: usize) -> Table<'static> {
    let rows = queues.iter().map(|queue| {
        let has_dead_letters = queue.is_dead_letter_queue() && queue.waiting + queue.in_flight > 0;
        let style = if has_dead_letters { Style::new().fg(Color::Red) } else { Style::new() };
        Row::new(queue_cells(queue)).style(style)
    });
    let widths = [Constraint::Length(24), Constraint::Length(12), Constraint::Length(12), Constraint::Min(10)];
    let title = if left_out == 0 { "queues".to_owned() } else { format!("queues, without {left_out} empty ones") };
    Table::new(rows, widths).header(heading(QUEUE_COLUMNS)).block(Block::bordered().title(title))
}

/// Lines of the table of so many workers, of the lines that are free: none if not even one worker fits.
fn lines_of_workers(workers: usize, free: u16) -> u16 {
    let rows = u16::try_from(workers.min(WORKERS_MAX)).unwrap_or(u16::MAX).min(free.saturating_sub(FRAME));
    if rows == 0 { 0 } else { rows + FRAME }
}

fn worker_table(snapshot: &Snapshot) -> Table<'static> {
    let rows = snapshot.workers().iter().map(|worker| Row::new(worker_cells(worker, snapshot.at)));
    let widths = [
        Constraint::Max(40),
        Constraint::Max(24),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(20),
        Constraint::Length(8),
        Constraint::Min(9),
    ];
    let title = format!("workers with tasks: {}", snapshot.workers().len());
    Table::new(rows, widths).header(heading(WORKER_COLUMNS)).block(Block::bordered().title(title))
}

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, selected: &mut TableState) {
    let rows = snapshot.jobs.iter().map(|job| Row::new(job_cells(job, snapshot.at)));
    let widths = [
        Constraint::Length(36),
        Constraint::Max(20),
        Constraint::Max(16),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(5),
        Constraint::Length(14),
        Constraint::Length(10),
        Constraint::Min(8),
    ];
    let title = format!("active jobs: {}", snapshot.active);
    let table = Table::new(rows, widths).header(heading(JOB_COLUMNS)).block(Block::bordered().title(title));
    let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, selected);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::fixtures::{job, snapshot};
    use super::*;

    fn drawn(screen: &mut Screen) -> String {
        drawn_in(20, screen)
    }

    fn drawn_in(lines: u16, screen: &mut Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(130, lines)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, code: KeyCode) -> bool {
        screen.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn the_screen_shows_queues_jobs_and_rates() {
        let mut screen = Screen::default();
        assert!(drawn(&mut screen).contains("Reading the stack..."));
        screen.show(Snapshot { jobs: vec![job(1, 500)], active: 1, ..snapshot() });
        let text = drawn(&mut screen);
        for part in [
            "rowmill at 2025-01-01T00:01:00Z",
            "rates: – items/s",
            "Items                    1,234        10           1 min 15 s",
            "active jobs: 1",
            "00000000-0000-0000-0000-000000000001 user-1",
            "50%",
            "q quits",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn a_low_screen_shows_every_queue_with_messages_and_the_first_empty_ones() {
        let queue = |number: u64| {
            let (waiting, in_flight) = (u64::from(number == 15), u64::from(number == 9));
            Queue { name: format!("Queue{number}"), waiting, in_flight, oldest: None }
        };
        let queues: Vec<Queue> = (1..=15).map(queue).collect();
        let mut screen = Screen::default();
        screen.show(Snapshot { queues, jobs: vec![job(1, 500)], active: 1, ..snapshot() });
        let shows = |text: &str, number: u64| text.contains(&format!("Queue{number} "));
        let text = drawn_in(24, &mut screen);
        assert!(text.contains("queues, without 3 empty ones") && text.contains("user-1"), "{text}");
        assert_eq!((1..=15).filter(|number| !shows(&text, *number)).collect::<Vec<_>>(), [12, 13, 14], "{text}");
        let text = drawn_in(27, &mut screen);
        assert!(!text.contains("without") && (1..=15).all(|number| shows(&text, number)), "{text}");
    }

    #[test]
    fn workers_are_shown_where_the_screen_is_high_enough() {
        let mut list = rowmill_api::openapi::examples::workers();
        list.workers = vec![list.workers[0].clone(); 20];
        let mut screen = Screen::default();
        screen.show(Snapshot { jobs: vec![job(1, 500)], active: 1, workers: Some(list), ..snapshot() });
        for (lines, shown) in [(14, 0), (17, 0), (18, 1), (20, 3), (40, 8)] {
            let text = drawn_in(lines, &mut screen);
            let rows = text.lines().filter(|line| line.contains("render-7") && line.contains("17 of 40")).count();
            assert_eq!((rows, text.contains("workers with tasks: 20")), (shown, shown > 0), "{lines} lines\n{text}");
            assert!(text.contains("user-1") && text.contains("ItemsDeadLetter"), "{text}");
        }
    }

    #[test]
    fn arrows_select_a_job_which_stays_selected_when_the_list_moves() {
        let mut screen = Screen::default();
        screen.show(Snapshot { jobs: vec![job(1, 0), job(2, 0)], active: 2, ..snapshot() });
        for (code, selected) in [(KeyCode::Down, 0), (KeyCode::Down, 1), (KeyCode::Down, 1), (KeyCode::Up, 0)] {
            assert!(press(&mut screen, code));
            assert_eq!(screen.selected.selected(), Some(selected));
        }
        screen.show(Snapshot { jobs: vec![job(3, 0), job(1, 0)], active: 2, ..snapshot() });
        assert_eq!(screen.selected.selected(), Some(1), "the same job");
        screen.show(Snapshot { jobs: vec![job(4, 0)], active: 1, ..snapshot() });
        assert_eq!(screen.selected.selected(), Some(0), "it has ended");
        screen.show(snapshot());
        assert_eq!(screen.selected.selected(), None);
        assert!(press(&mut screen, KeyCode::Down) && screen.selected.selected().is_none());
    }

    #[test]
    fn q_and_control_c_quit() {
        let mut screen = Screen::default();
        assert!(press(&mut screen, KeyCode::Char('c')));
        assert!(!press(&mut screen, KeyCode::Char('q')));
        assert!(!screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }

    #[test]
    fn a_failure_is_shown_beside_what_was_known_before() {
        let mut screen = Screen::default();
        screen.show(snapshot());
        screen.fail("no \u{1b}credentials");
        let text = drawn(&mut screen);
        assert!(text.contains(r"not up to date: no \u{1b}credentials") && text.contains("1,234"), "{text}");
        screen.show(snapshot());
        assert!(!drawn(&mut screen).contains("not up to date"));
    }
}
