//! The table as a picture.

use std::fmt::Write as _;

use super::table::Row;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 690.0;
const BAR: f64 = 20.0;
const STEP: f64 = 26.0;
const HEAD: f64 = 34.0;

/// A bar for each row, in groups of one size and so many devices.
pub(crate) fn picture(rows: &[Row]) -> String {
    let groups: Vec<&[Row]> = rows
        .chunk_by(|a, b| (a.log_n, &a.device, a.gpus) == (b.log_n, &b.device, b.gpus))
        .collect();
    let height = 46.0 + HEAD * groups.len() as f64 + STEP * rows.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"{height}\" \
         viewBox=\"0 0 1000 {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"22\" fill=\"#222\">proofs a minute, every one verified; w workers a \
         device, c jobs at once, p partitions a job; in brackets the share of time in which the \
         device computed</text>\n"
    );
    let mut y = 30.0;
    for group in groups {
        y += HEAD;
        let first = &group[0];
        let _ = writeln!(
            svg,
            "<text x=\"12\" y=\"{:.1}\" font-weight=\"bold\" fill=\"#222\">2^{} rows, {}</text>",
            y - 8.0,
            first.log_n,
            first.devices()
        );
        // Sizes differ by magnitudes: each has its own scale.
        let alike = rows.iter().filter(|row| row.log_n == first.log_n);
        let most = alike.map(Row::per_minute).fold(1e-9, f64::max);
        for row in group {
            bar(&mut svg, row, y, row.per_minute() / most * WIDTH);
            y += STEP;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn bar(svg: &mut String, row: &Row, y: f64, length: f64) {
    let colour = match row.workers {
        0 => "#bbbbbb",
        1 => "#cfe3f5",
        2 => "#8fc1ea",
        _ => "#5f97cc",
    };
    let share = row
        .busy_share
        .map_or_else(String::new, |share| format!(" ({:.1} %)", 100.0 * share));
    let middle = y + 14.0;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>\
         <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{middle:.1}\" fill=\"#111\">{:.1}{share}</text>",
        LEFT - 8.0,
        row.name(),
        LEFT + length + 6.0,
        row.per_minute()
    );
}
