//! What a benchmark is given: servers, sizes, and sides measured in turn.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use ttl_ext_e2e::Server;

use crate::options::{Options, Size};
use crate::results::{Benchmark, Row, Target};

/// Settings as in production, but for what would strike one side and not the other:
/// autovacuum is off where a benchmark does not ask for it (each side's tables are
/// vacuumed before it is measured), and no checkpoint begins by itself within minutes.
/// Commits do not wait for the disk where it is the work of statements that is measured:
/// otherwise the disk would level everything.
const SETTINGS: [(&str, &str); 14] = [
    ("shared_buffers", "1GB"),
    ("maintenance_work_mem", "256MB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "30min"),
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("synchronous_commit", "off"),
    ("autovacuum", "off"),
    ("max_connections", "60"),
    ("max_worker_processes", "20"),
    ("max_locks_per_transaction", "256"),
    ("ttl.enabled", "off"),
    ("ttl.guard_fraction", "1"),
    ("ttl.change_delay", "0"),
];

/// A benchmark's surroundings.
pub struct Context {
    /// What the caller wants.
    pub options: Options,
    main: RefCell<Option<Rc<Server>>>,
}

/// The figures of one measurement of one side: names and values.
pub type Figures = Vec<(&'static str, f64)>;

/// All figures of all sides, in the order of the repetitions.
#[derive(Debug, Default)]
pub struct Runs(HashMap<(String, &'static str), Vec<f64>>);

impl Runs {
    /// The figures of a side.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(&self, side: &str, figure: &'static str) -> Vec<f64> {
        let values = self.0.get(&(side.to_owned(), figure));
        values
            .unwrap_or_else(|| panic!("no {figure} of {side}"))
            .clone()
    }

    fn add(&mut self, side: &str, figures: Figures) {
        for (figure, value) in figures {
            self.0
                .entry((side.to_owned(), figure))
                .or_default()
                .push(value);
        }
    }
}

impl Context {
    /// With no server yet.
    pub fn new(options: Options) -> Context {
        Context {
            options,
            main: RefCell::new(None),
        }
    }

    /// The server that most benchmarks share, without background deletion; started when
    /// first asked for.
    pub fn server(&self) -> Rc<Server> {
        let mut main = self.main.borrow_mut();
        let server = main.get_or_insert_with(|| Rc::new(self.own_server(&[])));
        Rc::clone(server)
    }

    /// A server of a benchmark's own, with further settings.
    pub fn own_server(&self, settings: &[(&str, &str)]) -> Server {
        let mut all = SETTINGS.to_vec();
        all.extend(settings);
        Server::start(&all)
    }

    /// Stop the shared server: what follows needs the machine for itself, or the shared
    /// one has failed.
    pub fn stop_server(&self) {
        self.main.borrow_mut().take();
    }

    /// Measure the sides in turn. The order turns about from one repetition to the
    /// next, so that what drifts strikes none more than the other. With `warm_up` a full
    /// run has one round before, which is thrown away.
    pub fn alternate(
        &self,
        repetitions: usize,
        warm_up: bool,
        sides: &[&str],
        mut measure: impl FnMut(&str) -> Figures,
    ) -> Runs {
        if warm_up && self.options.size == Size::Full {
            for side in sides {
                measure(side);
            }
        }
        Self::in_turn(self.options.repetitions(repetitions), sides, measure)
    }

    /// As [`Context::alternate`], so often: for what takes minutes.
    pub fn in_turn(
        repetitions: usize,
        sides: &[&str],
        mut measure: impl FnMut(&str) -> Figures,
    ) -> Runs {
        let mut runs = Runs::default();
        for repetition in 0..repetitions {
            let mut order = sides.to_vec();
            if repetition % 2 == 1 {
                order.reverse();
            }
            for side in order {
                runs.add(side, measure(side));
            }
        }
        runs
    }
}

impl Context {
    /// As [`Context::alternate`], for sides that are measured at the same time, in turns of
    /// their own: the figures of each, in the order of the sides given.
    pub fn together(
        &self,
        repetitions: usize,
        sides: &[&str],
        mut measure: impl FnMut(&[&str]) -> Vec<Figures>,
    ) -> Runs {
        let mut runs = Runs::default();
        if self.options.size == Size::Full {
            measure(sides);
        }
        for repetition in 0..self.options.repetitions(repetitions) {
            let mut order = sides.to_vec();
            if repetition % 2 == 1 {
                order.reverse();
            }
            for (side, figures) in order.iter().zip(measure(&order)) {
                runs.add(side, figures);
            }
        }
        runs
    }
}

impl Benchmark {
    /// A figure against a baseline, of the same runs.
    pub fn compare(
        &mut self,
        what: &str,
        unit: &str,
        ours: Vec<f64>,
        baseline: (&str, Vec<f64>),
        target: Option<Target>,
    ) {
        let as_often = baseline.1.is_empty() || baseline.1.len() == ours.len();
        assert!(as_often, "{what}: the sides were not measured as often");
        self.rows.push(Row {
            what: what.to_owned(),
            unit: unit.to_owned(),
            ours,
            baseline_name: baseline.0.to_owned(),
            baseline: baseline.1,
            target,
            unavailable: None,
        });
    }

    /// A figure without a baseline to divide by.
    pub fn absolute(&mut self, what: &str, unit: &str, values: Vec<f64>, target: Option<Target>) {
        self.compare(what, unit, values, ("", Vec::new()), target);
    }

    /// A figure that cannot be had here, and why.
    pub fn unavailable(&mut self, what: &str, baseline: &str, target: Option<Target>, why: &str) {
        self.compare(what, "", Vec::new(), (baseline, Vec::new()), target);
        let row = self.rows.last_mut().expect("the row just added");
        row.unavailable = Some(why.to_owned());
    }

    /// Something that a reader should know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Record the settings of a server.
    pub fn settings_of(&mut self, name: &str, server: &Server) {
        let mut session = server.connect("postgres", "postgres");
        let rows = session.rows(
            "SELECT name, current_setting(name) FROM pg_settings
              WHERE (source = 'configuration file' OR name LIKE 'ttl.%')
                AND name !~ '^log_|^lc_|_format$|unix_socket|listen|text_search|[tT]ime[zZ]one|^ttl.*_ts$|show_expired'",
        );
        let settings: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        self.settings.insert(name.to_owned(), settings);
    }
}
