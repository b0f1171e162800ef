//! Software pipelines of loops: what runs in which iteration, which slots of rings hold what meanwhile, as data for tools and
//! as a picture for people.
//!
//! In a loop of `S` stages an operation of stage `s` runs for iteration `i` of the source in iteration `i - (S - 1 - s)` of the
//! new loop; negative ones are the prologue. A ring's slot of iteration `i` is `i` modulo its slots.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::style::svg_fill;
use super::svg::{CHARACTER, GAP, LINE, MARGIN, escape, open, write_left};

/// A loop: its pipeline, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The function that it is in.
    pub function: String,
    /// Where it is in the source, as `file:line:column`; empty where nobody knows.
    pub place: String,
    /// Why it has no pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Iterations that overlap; 1 without a pipeline.
    pub stages: u32,
    /// Iterations of the source that are one of the new loop, where there are several; `steps` are those of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unroll: Option<u32>,
    /// What an iteration of the new loop does, in order.
    pub steps: Vec<TimelineStep>,
    /// Buffers that are used in turn.
    pub rings: Vec<TimelineRing>,
}

/// A step of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimelineStep {
    /// What it does, as `tt.dot`, `copy to ring 0`, `await copies …`.
    pub what: String,
    /// The number of an operation in the loop as it was written, by which waits name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The stage of an operation; waits and ends of groups have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Its line in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Buffers that are used in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimelineRing {
    /// How many.
    pub slots: u32,
    /// Bytes of each.
    pub bytes: u64,
    /// The stage of what fills them. Those who read are in the last one.
    pub filled_in: u32,
}

impl Timeline {
    /// A loop that is as it was written, and why.
    pub fn without(function: String, place: String, reason: String) -> Self {
        Self { reason: Some(reason), ..Self::with(function, place, 1) }
    }

    /// A loop with a pipeline, to which steps and rings are to be added.
    pub fn with(function: String, place: String, stages: u32) -> Self {
        let (steps, rings) = (Vec::new(), Vec::new());
        Self { function, place, reason: None, stages, unroll: None, steps, rings }
    }

    /// Adds an operation.
    pub fn operation(&mut self, what: String, node: u32, stage: u32, line: Option<u32>) {
        self.steps.push(TimelineStep { what, node: Some(node), stage: Some(stage), line });
    }

    /// Adds a wait, or the end of a group.
    pub fn wait(&mut self, what: String) {
        self.steps.push(TimelineStep { what, node: None, stage: None, line: None });
    }

    /// Adds a ring.
    pub fn ring(&mut self, slots: u32, bytes: u64, filled_in: u32) {
        self.rings.push(TimelineRing { slots, bytes, filled_in });
    }

    fn title(&self) -> String {
        let place = if self.place.is_empty() { "a loop" } else { &self.place };
        match &self.reason {
            Some(reason) => format!("{place} in {}: no software pipeline: {reason}", self.function),
            None => {
                let unroll =
                    self.unroll.map_or_else(String::new, |unroll| format!(", unrolled {unroll} times"));
                format!("{place} in {}: {} stages{unroll}", self.function, self.stages)
            }
        }
    }
}

/// Loops as text that [`from_json`] reads: a list of objects.
pub fn to_json(timelines: &[Timeline]) -> String {
    serde_json::to_string_pretty(timelines).unwrap_or_else(|_| "[]".to_owned())
}

/// Loops from the text of [`to_json`].
///
/// # Errors
/// Where it is something else.
pub fn from_json(text: &str) -> Result<Vec<Timeline>, String> {
    let timelines: Vec<Timeline> = serde_json::from_str(text).map_err(|err| err.to_string())?;
    match timelines.iter().find(|one| one.stages == 0 || one.stages > MOST_STAGES) {
        Some(one) => Err(format!("a loop has {} stages; drawn are 1 to {MOST_STAGES}", one.stages)),
        None => Ok(timelines),
    }
}

/// More iterations are not drawn beside each other.
const MOST_STAGES: u32 = 64;
/// Width of an iteration.
const COLUMN: usize = 44;
/// Height of a stage and of a slot.
const ROW: usize = 22;
/// Iterations behind the prologue, besides as many as there are stages.
const MORE_ITERATIONS: u32 = 2;

/// The pipelines of loops, one below the other: which iteration of the source each stage works on in each iteration of the new
/// loop, what each slot of a ring holds meanwhile, and the steps of an iteration in order, with waits in red.
pub fn svg(timelines: &[Timeline]) -> String {
    let mut out = Vec::new();
    // A vector takes all that is written to it.
    let _ = draw(&mut out, timelines);
    String::from_utf8(out).unwrap_or_default()
}

fn draw(out: &mut impl Write, timelines: &[Timeline]) -> io::Result<()> {
    let parts: Vec<Part<'_>> = timelines.iter().map(Part::new).collect();
    let width = parts.iter().map(Part::width).max().unwrap_or(0).max(300);
    let height: usize = MARGIN + parts.iter().map(|part| part.height() + 2 * GAP).sum::<usize>();
    open(out, width, height, "software pipelines")?;
    if parts.is_empty() {
        write_left(out, MARGIN / 2, MARGIN, "no loops")?;
    }
    let mut top = MARGIN / 2;
    for part in &parts {
        writeln!(out, r#"<g transform="translate(0 {top})">"#)?;
        part.draw(out)?;
        writeln!(out, "</g>")?;
        top += part.height() + 2 * GAP;
    }
    writeln!(out, "</svg>")
}

/// A loop ready to be drawn.
struct Part<'a> {
    timeline: &'a Timeline,
    /// Room for names on the left.
    labels: usize,
    /// Iterations of the new loop, the prologue's included.
    columns: u32,
    lines: Vec<String>,
}

impl<'a> Part<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let stages = timeline.stages.clamp(1, MOST_STAGES);
        let is_piped = timeline.reason.is_none();
        let columns = if is_piped { 2 * stages - 1 + MORE_ITERATIONS } else { 0 };
        let lines = timeline.steps.iter().map(|step| line_of(step, stages)).collect();
        let names = (0..timeline.rings.len()).map(|ring| timeline.ring_name(ring).len());
        let labels = MARGIN / 2 + CHARACTER * (names.max().unwrap_or(0).max("stage 00".len()) + 2);
        Self { timeline, labels, columns, lines }
    }

    fn rows(&self) -> usize {
        let slots: usize = self.timeline.rings.iter().map(|ring| ring.slots as usize).sum();
        if self.columns == 0 { 0 } else { self.timeline.stages as usize + slots + 1 }
    }

    fn width(&self) -> usize {
        let text = self.lines.iter().map(|line| line.chars().count() + 8);
        let text = text.chain([self.timeline.title().chars().count()]).max().unwrap_or(0);
        MARGIN + (CHARACTER * text).max(self.labels + self.columns as usize * COLUMN)
    }

    fn height(&self) -> usize {
        let gaps = GAP * (self.timeline.rings.len() + 1);
        LINE + self.rows() * ROW + gaps + self.lines.len() * LINE
    }

    fn draw(&self, out: &mut impl Write) -> io::Result<()> {
        write_left(out, MARGIN / 2, LINE - 6, &self.timeline.title())?;
        if self.columns == 0 {
            return Ok(());
        }
        let mut top = LINE;
        self.draw_heads(out, top)?;
        top += ROW;
        let stages = self.timeline.stages;
        for stage in 0..stages {
            self.label(out, top, &format!("stage {stage}"))?;
            for column in 0..self.columns {
                // Iterations that do not exist are not run ahead of the loop.
                if let Some(iteration) = self.iteration(column, stage) {
                    self.cell(out, column, 1, top, iteration, 78)?;
                }
            }
            top += ROW;
        }
        for (number, ring) in self.timeline.rings.iter().enumerate() {
            top += GAP;
            self.label(out, top, &self.timeline.ring_name(number))?;
            self.draw_ring(out, top, ring)?;
            top += ring.slots as usize * ROW;
        }
        top += GAP;
        for (step, line) in self.timeline.steps.iter().zip(&self.lines) {
            let color = if step.stage.is_none() { "#c00" } else { "#000" };
            let place = step.line.map_or_else(String::new, |line| line.to_string());
            let y = top + LINE - 6;
            writeln!(
                out,
                r##"<text x="{}" y="{y}" text-anchor="end" fill="#666">{place}</text>"##,
                MARGIN + 4
            )?;
            writeln!(
                out,
                r#"<text x="{}" y="{y}" text-anchor="start" fill="{color}" xml:space="preserve">{}</text>"#,
                MARGIN + 12,
                escape(line)
            )?;
            top += LINE;
        }
        Ok(())
    }

    /// Numbers of the new loop's iterations, the prologue's in grey.
    fn draw_heads(&self, out: &mut impl Write, top: usize) -> io::Result<()> {
        self.label(out, top, "iteration")?;
        for column in 0..self.columns {
            let iteration = i64::from(column) - i64::from(self.timeline.stages - 1);
            let (x, y) = (self.labels + column as usize * COLUMN + COLUMN / 2, top + ROW - 7);
            let (text, color) = match iteration {
                0.. => (iteration.to_string(), "#000"),
                _ => (format!("({iteration})"), "#999"),
            };
            writeln!(out, r#"<text x="{x}" y="{y}" fill="{color}">{text}</text>"#)?;
        }
        Ok(())
    }

    /// What slots hold, from when it is asked for to when it is read.
    fn draw_ring(&self, out: &mut impl Write, top: usize, ring: &TimelineRing) -> io::Result<()> {
        let last = self.timeline.stages - 1;
        for read in last..self.columns {
            let ahead = last.saturating_sub(ring.filled_in);
            let iteration = read - last;
            let slot = (iteration % ring.slots.max(1)) as usize;
            self.cell(out, read - ahead, ahead + 1, top + slot * ROW, iteration, 90)?;
        }
        Ok(())
    }

    /// The iteration of the source that a stage works on, where there is one.
    fn iteration(&self, column: u32, stage: u32) -> Option<u32> {
        let (last, is_prologue) = (self.timeline.stages - 1, column < self.timeline.stages - 1);
        if is_prologue && stage == last {
            return None;
        }
        column.checked_sub(stage)
    }

    fn label(&self, out: &mut impl Write, top: usize, text: &str) -> io::Result<()> {
        write_left(out, MARGIN / 2, top + ROW - 7, text)
    }

    fn cell(
        &self,
        out: &mut impl Write,
        column: u32,
        columns: u32,
        top: usize,
        iteration: u32,
        lightness: u64,
    ) -> io::Result<()> {
        let x = self.labels + column as usize * COLUMN;
        let width = columns as usize * COLUMN;
        let (fill, frame) = (svg_fill(iteration.into(), lightness), svg_fill(iteration.into(), 35));
        writeln!(
            out,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}" stroke="{frame}"/>"#,
            x + 1,
            top + 1,
            width - 2,
            ROW - 2
        )?;
        writeln!(out, r#"<text x="{}" y="{}">{iteration}</text>"#, x + width / 2, top + ROW - 7)
    }
}

impl Timeline {
    fn ring_name(&self, number: usize) -> String {
        let ring = &self.rings[number];
        format!("ring {number}: {} × {} B", ring.slots, ring.bytes)
    }
}

/// As `ttc --explain` has it: a mark in the column of the stage.
fn line_of(step: &TimelineStep, stages: u32) -> String {
    match step.stage.map(|stage| stage.min(stages)) {
        Some(stage) => {
            let (column, rest) = ("| ".repeat(stage as usize), "  ".repeat((stages - stage) as usize));
            let node = step.node.map_or_else(String::new, |node| format!("   #{node}"));
            format!("{column}*{rest}{}{node}", step.what)
        }
        None => step.what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Timeline {
        let mut timeline = Timeline::with("k".into(), "k.py:7:1".into(), 3);
        timeline.operation("copy to ring 0".into(), 4, 0, Some(8));
        timeline.wait("await copies [4], 1 groups pending".into());
        timeline.operation("tt.dot<>".into(), 5, 2, Some(9));
        timeline.ring(2, 4096, 0);
        timeline
    }

    #[test]
    fn json_comes_back() {
        let all = [example(), Timeline::without("k".into(), String::new(), "it has a barrier".into())];
        assert_eq!(from_json(&to_json(&all)).expect("read"), all);
        assert!(from_json("[{}]").is_err());
        let many = to_json(&all).replace("\"stages\": 3", "\"stages\": 4000000000");
        assert!(from_json(&many).expect_err("too many").contains("4000000000 stages"));
    }

    #[test]
    fn what_runs_ahead_and_what_slots_hold_is_drawn() {
        let timeline = example();
        let part = Part::new(&timeline);
        // Iterations -2 to 4 of the new loop.
        assert_eq!(part.columns, 7);
        let row = |stage| (0..7).map(|column| part.iteration(column, stage)).collect::<Vec<_>>();
        assert_eq!(row(0), [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]);
        assert_eq!(row(2), [None, None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
        let drawn = svg(std::slice::from_ref(&timeline));
        assert!(
            drawn.contains("| | *  tt.dot&lt;&gt;   #5") && drawn.contains("ring 0: 2 × 4096 B"),
            "{drawn}"
        );
        // A slot is taken for three iterations; five of the seven are read in what is drawn.
        assert_eq!(drawn.matches(&format!(r#"width="{}""#, 3 * COLUMN - 2)).count(), 5);
        assert_eq!(drawn.matches("<g ").count(), drawn.matches("</g>").count());
    }
}
