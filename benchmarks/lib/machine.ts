import { readFileSync } from "node:fs"
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

/**
 * The processor time that another process has used so far, in milliseconds, or `undefined` if the system does not
 * report it. Linux counts it in ticks of 10 ms.
 */
export const cpuTimeOf = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return undefined
  }
}

/** The processor time that this process has used so far, in milliseconds. */
export const cpuTime = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}
