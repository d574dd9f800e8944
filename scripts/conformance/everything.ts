/**
 * The server that is judged: `examples/everything`, as a process of its own on a free port.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { dirname, join } from "node:path"

const root = dirname(dirname(import.meta.dirname))

/** A server that runs. */
export interface Running {
  readonly url: string
  /** Asks it to stop. Fails when it has ended before, complains as it ends, or does not end in time: then it is killed. */
  readonly stop: () => Promise<void>
}

/** How long it may take to listen, and to stop, in milliseconds. */
const patience = 20_000

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

/** Starts it, and waits until it says where it listens. */
export const start = async (): Promise<Running> => {
  const child = spawn(
    process.execPath,
    ["--conditions=@skein/source", join(root, "examples", "everything", "main.ts"), "--port", "0"],
    { cwd: root, stdio: ["ignore", "pipe", "pipe"] }
  )
  // Whatever ends this process, the server does not outlive it.
  const kill = () => void child.kill("SIGKILL")
  process.once("exit", kill)
  const closed = once(child, "close").finally(() => process.off("exit", kill))
  let said = ""
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const tooLate = setTimeout(() => reject(new Error(`The server does not listen after ${patience} ms`)), patience)
      const hear = (text: string) => {
        // Where it listens comes first; of the rest, what it said last is enough for a report.
        said = (said + text).slice(-4000)
        const url = /http:\/\/\S+\/mcp/.exec(said)?.[0]
        if (url === undefined) return
        clearTimeout(tooLate)
        resolve(url)
      }
      child.stdout.setEncoding("utf8").on("data", hear)
      child.stderr.setEncoding("utf8").on("data", hear)
      const giveUp = (why: unknown) => {
        clearTimeout(tooLate)
        reject(why)
      }
      closed.then(() => giveUp(new Error("The server ended before it listened")), giveUp)
    })
    return {
      url,
      stop: async () => {
        if (hasEnded(child)) throw new Error(`The server ended while it was judged:\n${said}`)
        const tooLate = setTimeout(kill, patience)
        child.kill("SIGTERM")
        await closed
        clearTimeout(tooLate)
        if (child.signalCode === "SIGKILL") throw new Error(`The server did not stop within ${patience} ms:\n${said}`)
        if (child.signalCode !== "SIGTERM" && child.exitCode !== 0 && child.exitCode !== 143) {
          throw new Error(`The server did not stop cleanly, but with ${child.exitCode}:\n${said}`)
        }
      }
    }
  } catch (error) {
    kill()
    throw new Error(`${error instanceof Error ? error.message : error}\n${said}`, { cause: error })
  }
}
