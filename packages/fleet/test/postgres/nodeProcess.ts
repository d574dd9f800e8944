/** Starts `nodeProgram.ts` as processes. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

const program = fileURLToPath(new URL("./nodeProgram.ts", import.meta.url))

export interface Settings {
  /** The URL of the database. */
  readonly url: string
  /** 2 seconds by default. */
  readonly leaseTimeout?: `${number} seconds`
  /** With it, the node also drains as behind a load balancer. */
  readonly idleTimeout?: `${number} seconds`
  readonly nodeRequests?: { readonly port: number; readonly advertisedHost: string }
  /** The file to which each call adds a line, with its key and the process. */
  readonly calls?: string
}

/** The resources of a node. */
export interface Counts {
  readonly sessions: number
  readonly streams: number
  readonly requests: number
  /** The names of the clients, and whether the stream of each by GET is here. */
  readonly clients: ReadonlyArray<readonly [name: unknown, isListening: boolean]>
}

export interface NodeProcess {
  readonly port: number
  /** Its number in the fleet. */
  readonly node: number
  readonly pid: number
  readonly kill: (signal: NodeJS.Signals) => void
  /** How it has ended: its exit code, or the signal. */
  readonly ended: Promise<number | string>
  /** Counts its resources. */
  readonly counts: () => Promise<Counts>
}

/** Starts a process, which listens then. `onLog` gets the parts of its log. */
export const startNode = async (settings: Settings, onLog: (text: string) => void): Promise<NodeProcess> => {
  const child = fork(program, [JSON.stringify(settings)], {
    execArgv: ["--conditions=@skein/source"],
    stdio: ["ignore", "ignore", "pipe", "ipc"]
  })
  child.stderr!.setEncoding("utf8").on("data", onLog)
  const ended = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string)
  const message = async <A>(): Promise<A> => {
    const gone = ended.then((end) => Promise.reject(new Error(`the node has ended: ${end}`)))
    return Promise.race([once(child, "message").then(([message]) => message as A), gone])
  }
  const { node, port } = await message<{ readonly port: number; readonly node: number }>()
  return {
    node,
    port,
    pid: child.pid!,
    ended,
    kill: (signal) => void child.kill(signal),
    counts: () => {
      child.send({})
      return message()
    }
  }
}
