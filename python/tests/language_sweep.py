"""Sweeps over Triton's language with kernels of our own: finds refusals and wrong numbers of kernels compiled by ttopt.

    python language_sweep.py --compile [--target 90]    compiles every case through the hook; no GPU; gfx942 is a target, too
    python language_sweep.py --run --out sweep.json     runs every case with Triton alone and with ttopt; a GPU and torch
    python language_sweep.py --simulate --sample 300    compares the simulator with Triton's interpreter; no GPU
    python language_sweep.py --list

--only REGEX, --sample N and --seed S choose cases. The JSON of --out has every failure and its reason, and is written
also where the sweep is ended early. Exit status 1 says that something is wrong or refused.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from language_sweep_cases import all_cases, difference  # noqa: E402

# Which process says what is right, and which is judged.
PAIRS = {"run": ("run:0", "run:strict"), "simulate": ("interpret", "simulate")}
FAILURES = ("refused", "wrong", "crashed", "not ours")
COLUMNS = ("cases", "triton passes", "ours pass", *FAILURES, "triton fails", "missing", "not run")


class Process:
    """A worker that is started when it is needed, and again after a case that ended it."""

    def __init__(self, mode, folder, limit, recycle=2000):
        self.mode, self.folder, self.limit, self.recycle = mode, folder, limit, recycle
        self.child, self.taken, self.broken = None, 0, None

    def start(self):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TTOPT": "0", "OMP_NUM_THREADS": "1"}
        environment.pop("TRITON_INTERPRET", None)
        self.log = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("language_sweep_worker.py")), self.mode, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        self.taken = 0
        answer = self.read(180)
        if answer.get("status") != "ready":
            self.broken = f"{self.mode} does not start: {answer.get('reason')}\n{answer.get('trace', '')}"
            self.stop()

    def read(self, limit):
        """The next answer, or why there is none."""
        late = []

        def end():
            late.append(True)
            self.child.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        try:
            line = self.child.stdout.readline()
        finally:
            timer.cancel()
        try:
            return json.loads(line)
        except ValueError:
            self.child.kill()
            code = self.child.wait()
            self.log.seek(0, os.SEEK_END)
            self.log.seek(max(0, self.log.tell() - 700))
            said = self.log.read().decode(errors="replace").strip()
            reason = f"took more than {limit} s" if late else f"the process ended with {code}: {said}"
            self.child = None
            return {"status": "crashed", "reason": reason}

    def take(self, number):
        if self.child is not None and self.taken >= self.recycle:
            self.stop()
        if self.child is None:
            self.start()
            if self.broken:
                return {"status": "not run", "reason": self.broken}
        self.taken += 1
        try:
            self.child.stdin.write(f"{number}\n")
            self.child.stdin.flush()
        except OSError:
            pass  # The read says why.
        answer = self.read(self.limit)
        if answer.get("fatal"):
            self.stop()
        return answer

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child.stdout.close()
            self.child = None
            self.log.close()


class Sweep:
    """Cases, and what became of them in each mode."""

    def __init__(self, args, numbers, modes, folder):
        self.args, self.numbers, self.modes, self.folder = args, numbers, modes, folder
        self.cases = all_cases()
        self.outcomes = defaultdict(dict)  # number -> mode -> outcome
        self.verdicts = {}
        self.queues = {mode: deque(numbers) for mode in modes}
        self.lock = threading.Lock()
        self.started, self.written, self.ended, self.notes = time.time(), 0, None, []
        self.processes = []
        self.versions = {"python": sys.version.split()[0]}

    def run(self):
        for name in ("triton", "torch", "ttopt", "numpy"):
            try:
                from importlib.metadata import version

                self.versions[name] = version(name)
            except Exception:
                self.versions[name] = "?"
        jobs = max(self.args.jobs, len(self.modes)) if len(self.modes) > 1 and self.args.jobs > 1 else self.args.jobs
        threads = []
        for slot in range(jobs):
            # With one process the modes take turns; with more each has its own, and helps others at the end.
            first = slot % len(self.modes)
            order = self.modes[first:] + self.modes[:first]
            threads.append(threading.Thread(target=self.slot, args=(order,), daemon=True))
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.2) if threads[0].is_alive() else time.sleep(0.2)
                if self.args.seconds and time.time() - self.started > self.args.seconds:
                    self.ended = f"ended after {self.args.seconds} s"
                    break
                if time.time() - self.written > 10:
                    self.progress()
        except (KeyboardInterrupt, SystemExit) as error:
            self.ended = f"ended by {error!r}"
        finally:
            for queue in self.queues.values():
                queue.clear()
            if self.ended:
                for process in list(self.processes):
                    if process.child is not None:
                        process.child.kill()
            self.write()

    def slot(self, order):
        for mode in order:
            process = Process(mode, self.folder, self.args.timeout)
            self.processes.append(process)
            while not self.ended:
                try:
                    number = self.queues[mode].popleft()
                except IndexError:
                    break
                outcome = process.take(number)
                if process.broken:
                    self.note(process.broken)
                    break
                if not self.ended:
                    try:
                        self.finish(number, mode, outcome)
                    except Exception as error:
                        self.note(f"{self.cases[number].id}: {error!r}")
            process.stop()

    def note(self, text):
        with self.lock:
            if text not in self.notes:
                self.notes.append(text)
                print(text, flush=True)

    def finish(self, number, mode, outcome):
        with self.lock:
            mine = self.outcomes[number]
            mine[mode] = outcome
            if len(mine) < len(self.modes):
                return
        verdict = self.judge(number, mine)
        with self.lock:
            self.verdicts[number] = verdict
        for one in mine.values():
            if mode.startswith(("run", "sim", "int")) and one.get("file"):
                Path(one["file"]).unlink(missing_ok=True)
        if verdict[0] in FAILURES:
            print(f"{verdict[0]}: {self.cases[number].id} {self.cases[number].options}: {verdict[1]}", flush=True)

    def judge(self, number, outcomes):
        """A class and a reason, from what each mode says."""
        if len(self.modes) == 1:
            only = outcomes[self.modes[0]]
            status = {"ok": "ours pass"}.get(only["status"], only["status"])
            return (status if status in COLUMNS else "crashed"), only.get("reason", "")
        reference, judged = (outcomes[mode] for mode in self.modes)
        if reference["status"] == "missing" or judged["status"] == "missing":
            return "missing", reference.get("reason") or judged.get("reason", "")
        if reference["status"] != "ok":
            return "triton fails", f"{reference['status']}: {reference.get('reason', '')}"
        if judged["status"] == "failed":
            # A fault or a refused launch of code that was compiled is as bad as a wrong number.
            compiled = judged.get("stage") == "execution" or "Triton Error" in judged["reason"]
            return ("crashed" if compiled else "refused"), judged["reason"]
        if judged["status"] != "ok":
            return judged["status"], judged["reason"]
        told = self.compared(number, reference, judged)
        if told is None and judged.get("findings"):
            told = "; ".join(judged["findings"])
        return ("wrong", told) if told else ("ours pass", "")

    def compared(self, number, reference, judged):
        case = self.cases[number]
        memories = []
        for outcome in (reference, judged):
            raw, at, memory = Path(outcome["file"]).read_bytes(), 0, {}
            for name, buffer in case.buffers():
                size = len(buffer.bytes(case.seed(name)))
                memory[name] = raw[at : at + size]
                at += size
            memories.append(memory)
        for name, buffer in case.buffers():
            untouched = buffer.written and memories[0][name] == memories[1][name] == buffer.bytes(case.seed(name))
            if untouched and self.args.verbose:
                print(f"{case.id}: {name} was not written", flush=True)
        return difference(case, *memories)

    def table(self):
        rows = defaultdict(Counter)
        for number in self.numbers:
            row = rows[self.cases[number].family]
            verdict = self.verdicts.get(number, ("not run", ""))[0]
            row["cases"] += 1
            row[verdict] += 1
            row["triton passes"] += verdict in ("ours pass", *FAILURES)
        return rows

    def progress(self):
        counts = Counter(verdict for verdict, _ in list(self.verdicts.values()))
        print(f"{time.time() - self.started:.0f} s: {len(self.verdicts)} of {len(self.numbers)}, {dict(counts)}", flush=True)
        self.write()

    def write(self):
        self.written = time.time()
        if not self.args.out:
            return
        with self.lock:
            found = dict(self.verdicts)
            notes = list(self.notes)

        def told(number):
            case, (verdict, reason) = self.cases[number], found[number]
            facts = {"case": case.id, "verdict": verdict, "reason": reason, "options": case.options}
            files = [one["file"] for one in self.outcomes[number].values() if one.get("file")]
            return {**facts, "ttir": files[0]} if verdict == "refused" and files else facts

        result = {
            "modes": self.modes,
            "versions": self.versions,
            "seconds": round(time.time() - self.started, 1),
            "ended": self.ended,
            "notes": notes,
            "table": {family: dict(row) for family, row in self.table().items()},
            "failures": [told(number) for number in sorted(found) if found[number][0] in FAILURES],
            "triton fails": [told(number) for number in sorted(found) if found[number][0] == "triton fails"],
            "missing": Counter(reason for verdict, reason in found.values() if verdict == "missing"),
        }
        path = Path(self.args.out)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".part")
        draft.write_text(json.dumps(result, indent=1))
        draft.replace(path)

    def report(self):
        rows = self.table()
        total = sum(rows.values(), Counter())
        width = max(map(len, rows), default=5)
        print("\n" + " ".join([" " * width, *(f"{column:>13}" for column in COLUMNS)]))
        for family, row in [*rows.items(), ("all", total)]:
            print(" ".join([f"{family:{width}}", *(f"{row[column]:13}" for column in COLUMNS)]))
        reasons = Counter(
            re.sub(r"'[^']*'|-?\d[\d.e+-]*", "…", reason)[:160]
            for verdict, reason in self.verdicts.values()
            if verdict == "refused"
        )
        for reason, count in reasons.most_common(30):
            print(f"{count:6} x refused: {reason}")
        print(f"{time.time() - self.started:.0f} s; {self.ended or 'complete'}; {self.versions}", flush=True)
        failures = sum(total[verdict] for verdict in FAILURES)
        return 1 if failures or self.notes or total["not run"] else 0


def chosen(args):
    cases = all_cases()
    numbers = [at for at, case in enumerate(cases) if not args.only or re.search(args.only, case.id)]
    if args.sample and args.sample < len(numbers):
        numbers = sorted(random.Random(args.seed).sample(numbers, args.sample))
    # Families that compile slowly are spread over all processes.
    return numbers if args.list else random.Random(args.seed).sample(numbers, len(numbers))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--compile", action="store_true", help="compile every case through the hook, without a GPU")
    mode.add_argument("--run", action="store_true", help="run every case with and without ttopt on a GPU")
    mode.add_argument("--simulate", action="store_true", help="run cases in the simulator and in Triton's interpreter")
    mode.add_argument("--list", action="store_true", help="the names of all cases")
    parser.add_argument("--only", help="cases whose family/name matches this expression")
    parser.add_argument("--sample", type=int, help="at most so many cases, drawn with --seed")
    parser.add_argument("--seed", type=int, default=2026)
    targets = ("80", "90", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
    parser.add_argument("--target", default="90", choices=targets, help="capability or AMD GPU for --compile")
    parser.add_argument("--jobs", type=int, help="processes: 14 for --run, else 1")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a case")
    parser.add_argument("--seconds", type=float, help="end the sweep after so long")
    parser.add_argument("--keep", help="where kernels' sources and refused TTIR stay")
    parser.add_argument("--out", help="JSON with all failures")
    parser.add_argument("--verbose", action="store_true", help="say also which outputs are never written")
    args = parser.parse_args()
    args.jobs = args.jobs or (14 if args.run else 1)
    numbers = chosen(args)
    if args.list:
        for number in numbers:
            print(all_cases()[number].id)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    modes = [f"compile:{args.target}"] if args.compile else list(PAIRS["run" if args.run else "simulate"])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if args.keep:
            Path(args.keep).mkdir(parents=True, exist_ok=True)
        sweep = Sweep(args, numbers, modes, args.keep or folder)
        print(f"{len(numbers)} cases, {args.jobs} processes, {' and '.join(modes)}", flush=True)
        sweep.run()
        return sweep.report()


if __name__ == "__main__":
    sys.exit(main())
