//! Colours that tell lanes and warps apart.

/// Whether to colour text for a terminal.
#[derive(Clone, Copy)]
pub struct Style {
    pub color: bool,
}

impl Style {
    /// `text` in the colour of the `index`-th thing, when colouring.
    pub fn paint(self, index: u64, text: &str) -> String {
        // Readable on dark and light backgrounds, neighbours far apart.
        const COLORS: [u8; 12] = [39, 208, 41, 170, 142, 203, 44, 99, 130, 71, 168, 67];
        self.code(&format!("38;5;{}", COLORS[(index % COLORS.len() as u64) as usize]), text)
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    /// Less important.
    pub fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    /// Something bad.
    pub fn alarm(self, text: &str) -> String {
        self.code("1;31", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A fill for SVG: the hue goes round with `index` by the golden angle, so that neighbours differ.
pub fn svg_fill(index: u64, lightness: u64) -> String {
    let hue = index.wrapping_mul(137) % 360;
    format!("hsl({hue},65%,{lightness}%)")
}
