/**
 * The process of the host, as the soak sees it.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"

/** Runs it with so much of everything, prints its table, and gives what is wrong. */
export const host = async (
  scale: number,
  print: (line: string) => void,
  more: ReadonlyArray<string> = []
): Promise<ReadonlyArray<string>> => {
  const flags = [
    "--expose-gc",
    "--no-flush-bytecode",
    "--disable-warning=ExperimentalWarning",
    "--conditions=@skein/source"
  ]
  const args = [...flags, join(import.meta.dirname, "host.ts"), "--scale", String(scale), ...more]
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] })
  const problems: Array<string> = []
  createInterface({ input: child.stdout }).on("line", print)
  createInterface({ input: child.stderr }).on("line", (line) => problems.push(line))
  const [code, signal] = await once(child, "close")
  if (code !== 0 && problems.length === 0) problems.push(`The host ended with ${code ?? signal}`)
  return problems
}
