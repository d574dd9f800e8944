/**
 * Starts servers as child processes on free ports: `examples/everything`, in one process or in several, and a proxy in front
 * of it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { dirname, join } from "node:path"

const root = dirname(dirname(import.meta.dirname))

export interface RunningServer {
  readonly url: string
  /**
   * Sends SIGTERM. Fails if the server has exited already, exits with an error, or does not exit in time. In the last
   * case it is killed.
   */
  readonly stop: () => Promise<void>
}

/** How long the server may take to start, and to stop, in milliseconds. */
const processTimeout = 20_000

const hasExited = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

/** Starts a program, whose path is relative to the repository, and waits until it has printed the URL of its server. */
const startServer = async (program: string, ...args: ReadonlyArray<string>): Promise<RunningServer> => {
  const child = spawn(process.execPath, ["--conditions=@skein/source", join(root, program), ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"]
  })
  // The server does not outlive this process.
  const kill = () => void child.kill("SIGKILL")
  process.once("exit", kill)
  const closed = once(child, "close").finally(() => process.off("exit", kill))
  let output = ""
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the server printed no URL within ${processTimeout} ms`)),
        processTimeout
      )
      const onOutput = (text: string) => {
        // The URL comes first. Of the rest, the last lines are enough for a report.
        output = (output + text).slice(-4000)
        const url = /http:\/\/\S+\/mcp/.exec(output)?.[0]
        if (url === undefined) return
        clearTimeout(timer)
        resolve(url)
      }
      child.stdout.setEncoding("utf8").on("data", onOutput)
      child.stderr.setEncoding("utf8").on("data", onOutput)
      const fail = (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      }
      closed.then(() => fail(new Error("the server exited before it printed its URL")), fail)
    })
    return {
      url,
      stop: async () => {
        if (hasExited(child)) throw new Error(`the server exited during the run:\n${output}`)
        const timer = setTimeout(kill, processTimeout)
        child.kill("SIGTERM")
        await closed
        clearTimeout(timer)
        if (child.signalCode === "SIGKILL") {
          throw new Error(`the server did not exit within ${processTimeout} ms after SIGTERM:\n${output}`)
        }
        if (child.signalCode !== "SIGTERM" && child.exitCode !== 0 && child.exitCode !== 143) {
          throw new Error(`the server exited with ${child.exitCode} after SIGTERM:\n${output}`)
        }
      }
    }
  } catch (error) {
    kill()
    throw new Error(`${error instanceof Error ? error.message : error}\n${output}`, { cause: error })
  }
}

/** Starts `examples/everything`. */
export const startEverythingServer = (): Promise<RunningServer> =>
  startServer("examples/everything/main.ts", "--port", "0")

/** Starts `gatewayServer.ts` in front of the servers of a configuration, to which it speaks the revision. */
export const startGatewayServer = (config: object, revision: string): Promise<RunningServer> =>
  startServer("scripts/conformance/gatewayServer.ts", JSON.stringify(config), revision)

/** Starts `fleetNode.ts` with its arguments. */
export const startFleetNode = (...args: ReadonlyArray<string>): Promise<RunningServer> =>
  startServer("scripts/conformance/fleetNode.ts", ...args)
