"""Runs the tasks of `verdict cluster plan` on Apache Spark.

    spark-submit --master URL verdict_spark.py --tasks FILE --results FOLDER --worker PATH

Tasks are handed out in bundles, one Spark job each, so that the results of a bundle are on disk (one file for each task,
written whole) as soon as it is done. Spark runs a bundle again when the executor that had it is lost. Tasks that have
a result are not run again: whoever starts this once more continues where it ended.

On standard output: `progress DONE TOTAL COST_FRACTION` after each bundle, `error TEXT` if a bundle cannot be run.
"""

import argparse
import json
import os
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed

BUNDLES_PER_SLOT = 3


def run_bundle(worker, threads, max_memory, lines):
    """On an executor: the results of some tasks, from one worker process."""
    command = [worker, "cluster", "worker", "--workers", str(threads)]
    if max_memory:
        command += ["--max-memory", max_memory]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the worker ended with {done.returncode}: {done.stderr.strip()}")
    results = done.stdout.splitlines()
    if len(results) != len(lines):
        raise RuntimeError(f"the worker gave {len(results)} results for {len(lines)} tasks")
    return results


def result_path(folder, number):
    return os.path.join(folder, f"task-{number}.json")


def has_result(folder, task):
    """Whether a whole result of this very task is there: one that was damaged is made again."""
    try:
        with open(result_path(folder, task["task"]["number"]), encoding="utf-8") as file:
            text = file.read()
        result = json.loads(text)
    except (OSError, ValueError):
        return False
    return result.get("plan") == task["plan"] and text.endswith("}\n") and checksum_matches(text)


def checksum_matches(text):
    """The checksum comes last, and was taken with 0 in its place."""
    head, mark, number = text.rpartition('"checksum":')
    return number.strip("}\n") == str(zlib.crc32(f"{head}{mark}0}}\n".encode()))


def write_result(folder, line):
    path = result_path(folder, json.loads(line)["task"])
    partial = path + ".partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise RuntimeError(f"{path}: cannot be written: {error.strerror}") from error


def bundles_of(tasks, count):
    """At most `count` lists of neighbouring tasks of about the same cost."""
    total = sum(task["task"]["cost"] + 1 for task, _ in tasks)
    bundles, cost = [[]], 0
    for task, line in tasks:
        if bundles[-1] and cost * count >= len(bundles) * total:
            bundles.append([])
        bundles[-1].append((task, line))
        cost += task["task"]["cost"] + 1
    return [bundle for bundle in bundles if bundle]


def first_line(error):
    """Of all that Spark says, what the worker said."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        # The last line of a traceback, not the source in it.
        if line.startswith("RuntimeError: the worker "):
            return line[len("RuntimeError: "):]
    return lines[0] if lines else repr(error)


def say(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--max-memory", default="")
    parser.add_argument("--slots", type=int, default=0)
    options = parser.parse_args()
    os.makedirs(options.results, exist_ok=True)
    with open(options.tasks, encoding="utf-8") as file:
        all_tasks = [(json.loads(line), line) for line in file if line.strip()]
    tasks = [(task, line) for task, line in all_tasks if not has_result(options.results, task)]
    total_cost = sum(task["task"]["cost"] + 1 for task, _ in all_tasks)
    left_cost = sum(task["task"]["cost"] + 1 for task, _ in tasks)
    done = len(all_tasks) - len(tasks)
    say(f"progress {done} {len(all_tasks)} {1 - left_cost / max(total_cost, 1):.6f}")
    if not tasks:
        return 0

    from pyspark import SparkConf, SparkContext

    context = SparkContext(conf=SparkConf().setAppName("verdict"))
    context.setLogLevel("ERROR")
    slots = options.slots or context.defaultParallelism
    worker, threads, max_memory = options.worker, options.threads, options.max_memory
    pool = ThreadPoolExecutor(max_workers=slots)

    def submit(bundle):
        lines = [line for _, line in bundle]
        job = context.parallelize([lines], 1)
        return job.flatMap(lambda these: run_bundle(worker, threads, max_memory, these)).collect()

    problem = None
    running = {pool.submit(submit, bundle): bundle for bundle in bundles_of(tasks, slots * BUNDLES_PER_SLOT)}
    for job in as_completed(running):
        bundle = running[job]
        try:
            for line in job.result():
                write_result(options.results, line)
        except Exception as error:  # whatever it is, the user is told in one sentence, and the others go on
            problem = problem or first_line(error)
            continue
        done += len(bundle)
        left_cost -= sum(task["task"]["cost"] + 1 for task, _ in bundle)
        say(f"progress {done} {len(all_tasks)} {1 - left_cost / max(total_cost, 1):.6f}")
    context.stop()
    if problem:
        say(f"error {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
