import { readdirSync, readFileSync } from "node:fs"
import { arch, availableParallelism, cpus, loadavg, platform } from "node:os"

/** The machine and the date of a run, in one line. */
export const describe = (): string =>
  [
    `${cpus()[0]?.model.trim() ?? "unknown processor"}, ${availableParallelism()} cores`,
    `${platform()} ${arch()}`,
    `Node ${process.versions.node}`,
    `load ${loadavg()[0]!.toFixed(2)} at the start`,
    new Date().toISOString().slice(0, 10)
  ].join(" · ")

/** The processor time of the running threads of a process, in milliseconds, as the scheduler of Linux counts it. */
const threadTimeOf = (pid: number): number => {
  let nanos = 0
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0])
    }
  } catch {
    // A thread has exited meanwhile, or this kernel does not count it.
  }
  return nanos / 1e6
}

/**
 * The processor time that another process has used so far, in milliseconds, or `undefined` if the system does not
 * report it. Linux reports that of the process, with its exited threads, in ticks of 10 ms, and that of its threads exactly.
 */
export const cpuTimeOf = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return Math.max((Number(fields[11]) + Number(fields[12])) * 10, threadTimeOf(pid))
  } catch {
    return undefined
  }
}

/** The child processes of a process, on Linux; none elsewhere. */
export const childrenOf = (pid: number): ReadonlyArray<number> => {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** The processor time that this process has used so far, in milliseconds. */
export const cpuTime = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}
