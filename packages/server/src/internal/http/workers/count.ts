/**
 * How many workers a machine or a container has processors for.
 */
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"

// More processes rarely help one server, and each has the memory of one.
const maxAutomatic = 8

/** Reads a file of the kernel; undefined where there is none. */
const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return undefined
  }
}

/** The processors that the control group of this process may use; `Infinity` without a limit. */
export const quota = (file: (path: string) => string | undefined = read): number => {
  // Version 2: "max 100000", or the microseconds of a period of microseconds.
  const [used, period] = file("/sys/fs/cgroup/cpu.max")?.split(" ") ?? [
    file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    file("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
  ]
  const processors = Number(used) / Number(period)
  return processors > 0 ? processors : Infinity
}

/** The number of workers: that of the option, or one for each processor, and at most 8. */
export const countOf = (workers: number | "auto", available = availableParallelism(), limit = quota()): number =>
  workers === "auto" ? Math.max(1, Math.min(available, Math.floor(limit), maxAutomatic)) : workers
