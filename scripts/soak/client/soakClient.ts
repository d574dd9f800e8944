/**
 * Starts the program of the client soak as a child process.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { withDeadline } from "../../deadline.ts"
import { requestFibers } from "../../fibers.ts"

/** Milliseconds in which the program must end by default. A full run takes three minutes on an idle machine. */
const programMillis = 1_200_000

/**
 * Runs all workloads, each scaled by `scale`, prints their table, and returns the problems that the program reported.
 */
export const soakClient = async (
  scale: number,
  print: (line: string) => void,
  more: ReadonlyArray<string> = [],
  milliseconds = programMillis
): Promise<ReadonlyArray<string>> => {
  const flags = [
    "--expose-gc",
    "--no-flush-bytecode",
    "--disable-warning=ExperimentalWarning",
    "--conditions=@skein/source"
  ]
  const args = [...flags, join(import.meta.dirname, "program.ts"), "--scale", String(scale), ...more]
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] })
  const problems: Array<string> = []
  createInterface({ input: child.stdout }).on("line", print)
  createInterface({ input: child.stderr }).on("line", (line) => problems.push(line))
  const describe = async () => {
    await requestFibers(child, () => problems.join("\n"))
    return problems.join("\n")
  }
  const limit = { milliseconds, describe }
  const ended = withDeadline("the soak of the client", limit, () => once(child, "close"))
  const [code, signal] = await ended.finally(() => child.kill("SIGKILL"))
  if (code !== 0 && problems.length === 0) problems.push(`the client program exited with ${code ?? signal}`)
  return problems
}
