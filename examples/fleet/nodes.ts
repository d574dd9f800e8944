/**
 * Starts, kills and replaces the nodes of the fleet.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Balancer } from "./balancer.ts"

interface Node {
  readonly name: string
  readonly process: ChildProcess
}

export class Nodes {
  readonly balancer = new Balancer()
  readonly #env: NodeJS.ProcessEnv
  readonly #nodes: Array<Node> = []
  #last = 0

  /** The variables of each node. */
  constructor(env: Readonly<Record<string, string>>) {
    this.#env = { ...process.env, ...env }
  }

  get names(): ReadonlyArray<string> {
    return this.#nodes.map(({ name }) => name)
  }

  /** Starts a node, and waits until the balancer sends requests to it. Returns its name. */
  async join(): Promise<string> {
    const name = `node ${++this.#last}`
    const child = fork(join(import.meta.dirname, "node.ts"), {
      env: this.#env,
      execArgv: ["--conditions=@skein/source"],
      stdio: ["ignore", "inherit", "inherit", "ipc"]
    })
    this.#nodes.push({ name, process: child })
    const port = await new Promise<number>((resolve, reject) => {
      child.once("message", ({ port }: { readonly port: number }) => resolve(port))
      child.once("exit", (code) => reject(new Error(`${name} ended with ${code} before it listened`)))
    })
    await this.balancer.add(name, port)
    return name
  }

  /** Removes the oldest node from the list. */
  #oldest(): Node {
    const node = this.#nodes.shift()
    if (node === undefined) throw new Error("there is no node")
    return node
  }

  /** Kills the oldest node as `kill -9`. */
  async kill(): Promise<string> {
    const node = this.#oldest()
    node.process.kill("SIGKILL")
    await once(node.process, "exit")
    this.balancer.remove(node.name)
    return `Killed ${node.name}.`
  }

  /** Replaces each node, one after the other, as a deploy does: the old one stops when the new one is ready. */
  async roll(): Promise<string> {
    const replaced: Array<string> = []
    for (let left = this.#nodes.length; left > 0; left--) {
      const next = await this.join()
      const node = this.#oldest()
      node.process.kill("SIGTERM")
      await once(node.process, "exit")
      this.balancer.remove(node.name)
      replaced.push(`${node.name} by ${next}`)
    }
    return `Replaced ${replaced.join(", ")}.`
  }

  /** Stops all of them. */
  async close(): Promise<void> {
    this.balancer.close()
    const running = this.#nodes.filter(({ process }) => process.exitCode === null && process.signalCode === null)
    for (const { process } of running) process.kill("SIGTERM")
    await Promise.all(running.map(({ process }) => once(process, "exit")))
  }
}
