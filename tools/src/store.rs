//! A folder of results by the hash of what they were made from, shared by any number of processes.
//!
//! An entry is written to a file of its own and renamed, so that it is there as a whole or not at all. It says the hash of
//! its contents, so that what a disk or a crash did to it is found out, and it is made again. Where the folder takes more
//! than its bound, entries that were used longest ago go.

use anyhow::{Context as _, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// First word of an entry.
const MAGIC: &str = "ttopt-store-1";
/// After so long a file that was never renamed is nobody's.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Entries are written so often before the folder is measured again.
const MEASURE_EVERY: u64 = 32;

/// Names an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Of all that a result depends on, each part with its length, so that no two lists of parts are taken for one.
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hex(&hash.finalize()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    most_bytes: u64,
    written: AtomicU64,
    corrupt: AtomicU64,
}

impl Store {
    /// Opens a folder, which is made where it is not there, for so many bytes.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path, most_bytes: u64) -> Result<Self> {
        let fresh = folder.join("fresh");
        fs::create_dir_all(&fresh).with_context(|| format!("cannot make {}", fresh.display()))?;
        let (written, corrupt) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { folder: folder.to_owned(), most_bytes, written, corrupt })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(&key.0[..2]).join(&key.0[2..])
    }

    /// An entry, if it is there and whole.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let Some(contents) = checked(&bytes) else {
            self.corrupt.fetch_add(1, Ordering::Relaxed);
            // Another process may have made it anew, or removed it: that is as well.
            let _ = fs::remove_file(&path);
            return None;
        };
        // What is used stays. A folder that cannot be written to can still be read.
        if let Ok(file) = File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(contents.to_vec())
    }

    /// Puts an entry there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, key: &Key, contents: &[u8]) -> Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let fresh =
            self.folder.join("fresh").join(format!("{}-{number}-{}", std::process::id(), &key.0[..16]));
        let path = self.path(key);
        let written = write(&fresh, contents).and_then(|()| {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
            fs::rename(&fresh, &path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written.with_context(|| format!("cannot write {}", path.display()))?;
        if self.written.fetch_add(1, Ordering::Relaxed).is_multiple_of(MEASURE_EVERY) {
            self.bound();
        }
        Ok(())
    }

    /// How many entries were found not to be whole.
    pub fn corrupt(&self) -> u64 {
        self.corrupt.load(Ordering::Relaxed)
    }

    /// Removes what was used longest ago, until nine tenths of the bound are taken. Other processes may do so, too.
    pub fn bound(&self) {
        let mut files = Vec::new();
        for folder in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_fresh = folder.file_name() == "fresh";
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(facts) = file.metadata() else { continue };
                let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if !is_fresh {
                    files.push((used, facts.len(), file.path()));
                } else if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    let _ = fs::remove_file(file.path());
                }
            }
        }
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.most_bytes {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.most_bytes / 10 * 9 {
                break;
            }
            let _ = fs::remove_file(path);
            total -= bytes;
        }
    }
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let head = format!("{MAGIC} {} {}\n", hex(&Sha256::digest(contents)), contents.len());
    file.write_all(head.as_bytes())?;
    file.write_all(contents)
}

/// The contents of an entry that is whole.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, contents) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let wanted = format!("{MAGIC} {} {}", hex(&Sha256::digest(contents)), contents.len());
    (head == wanted).then_some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_parts_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), 1 << 20).expect("opened");
        let key = Key::new(&[b"ab", b"c"]);
        assert_eq!(store.get(&key), None);
        store.put(&key, b"contents\nof it").expect("written");
        assert_eq!(store.get(&key).as_deref(), Some(&b"contents\nof it"[..]));
        assert_eq!(store.get(&Key::new(&[b"a", b"bc"])), None);
        assert_eq!(fs::read_dir(folder.path().join("fresh")).expect("there").count(), 0);
    }

    #[test]
    fn what_is_not_whole_is_found_out_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), 1 << 20).expect("opened");
        let key = Key::new(&[b"k"]);
        let breaks: [fn(&mut Vec<u8>); 4] = [
            |bytes| bytes.truncate(70),
            |bytes| *bytes.last_mut().expect("some") ^= 1,
            Vec::clear,
            |bytes| {
                bytes.push(0);
            },
        ];
        for (i, change) in breaks.into_iter().enumerate() {
            store.put(&key, b"what was made").expect("written");
            let mut bytes = fs::read(store.path(&key)).expect("there");
            change(&mut bytes);
            fs::write(store.path(&key), bytes).expect("written");
            assert_eq!(store.get(&key), None);
            assert_eq!(store.corrupt(), i as u64 + 1);
            assert!(!store.path(&key).exists());
        }
    }

    #[test]
    fn the_folder_stays_within_its_bound_and_keeps_what_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), 20_000).expect("opened");
        let key = |i: u64| Key::new(&[&i.to_le_bytes()]);
        for i in 0..30 {
            store.put(&key(i), &[i as u8; 1000]).expect("written");
            let old = SystemTime::now() - Duration::from_secs(1000 - i);
            File::options()
                .append(true)
                .open(store.path(&key(i)))
                .and_then(|f| f.set_modified(old))
                .expect("set");
        }
        assert!(store.get(&key(0)).is_some());
        store.bound();
        let left = (0..30).filter(|i| store.path(&key(*i)).exists()).count();
        assert!((14..=18).contains(&left), "{left}");
        assert!(
            store.get(&key(0)).is_some() && store.get(&key(1)).is_none() && store.get(&key(29)).is_some()
        );
    }

    #[test]
    fn what_a_killed_process_left_half_written_is_nobodys_and_goes_in_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), 1 << 20).expect("opened");
        let key = Key::new(&[b"k"]);
        store.put(&key, b"what was there").expect("written");
        let half = |name: &str, age: Duration| {
            let path = folder.path().join("fresh").join(name);
            fs::write(&path, &fs::read(store.path(&key)).expect("there")[..50]).expect("written");
            let file = File::options().append(true).open(&path).expect("there");
            file.set_modified(SystemTime::now() - age).expect("set");
            path
        };
        let (old, new) = (half("1-0-a", ABANDONED * 2), half("2-0-b", Duration::ZERO));
        // Neither is an entry, nor does it keep one from being written or read.
        assert_eq!(store.get(&key).as_deref(), Some(&b"what was there"[..]));
        store.put(&key, b"what is there").expect("written");
        assert_eq!(store.get(&key).as_deref(), Some(&b"what is there"[..]));
        store.bound();
        assert!(!old.exists() && new.exists() && store.corrupt() == 0);
    }
}
