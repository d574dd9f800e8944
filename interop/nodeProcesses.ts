/**
 * Three nodes of a fleet as processes, behind a balancer that gives each HTTP request to the next one. A test kills them
 * while a client calls tools.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect } from "vitest"
import { describePostgres } from "../packages/sql/test/describePostgres.ts"
import { type Balancer, startBalancer } from "../scripts/balancer.ts"
import { eventually } from "./eventually.ts"
import { textOf } from "./interactiveClientTests.ts"
import type { ServerAddress, TestClient } from "./testClient.ts"

const count = 3
const fixture = fileURLToPath(new URL("./fixtures/fleetNode.ts", import.meta.url))

interface NodeProcess {
  readonly child: ChildProcess
  readonly port: number
}

const startNode = async (url: string): Promise<NodeProcess> => {
  const child = spawn(process.execPath, ["--conditions=@skein/source", fixture], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, DATABASE_URL: url }
  })
  const [line] = await once(child.stdout.setEncoding("utf8"), "data") as [string]
  return { child, port: Number(line) }
}

const kill = async ({ child }: NodeProcess): Promise<void> => {
  const exit = once(child, "exit")
  child.kill("SIGKILL")
  await exit
}

export class NodeProcesses {
  readonly #url: string
  readonly #nodes: Array<NodeProcess>
  readonly #ports: Array<number>
  readonly balancer: Balancer

  private constructor(url: string, nodes: Array<NodeProcess>, ports: Array<number>, balancer: Balancer) {
    this.#url = url
    this.#nodes = nodes
    this.#ports = ports
    this.balancer = balancer
  }

  static async start(url: string): Promise<NodeProcesses> {
    const nodes = await Promise.all(Array.from({ length: count }, () => startNode(url)))
    const ports = nodes.map(({ port }) => port)
    return new NodeProcesses(url, nodes, ports, await startBalancer(ports))
  }

  get http(): ServerAddress {
    return { transport: "http", url: `http://127.0.0.1:${this.balancer.port}/mcp` }
  }

  /**
   * Kills each node as `kill -9`, one after the other, and starts another in its place. `next` runs before each and at the
   * end, and `killed` while the node is missing.
   */
  async replaceAll(next: () => Promise<void>, killed: () => Promise<void>): Promise<void> {
    for (const [index, node] of this.#nodes.entries()) {
      await next()
      await kill(node)
      await killed()
      const started = await startNode(this.#url)
      this.#nodes[index] = started
      this.#ports[index] = started.port
    }
    await next()
  }

  /** Whether a node was killed before it has answered a call. */
  hasLost(text: string): boolean {
    return this.balancer.lost.some(({ body }) => body.includes(JSON.stringify(text)))
  }

  async close(): Promise<void> {
    await this.balancer.close()
    await Promise.all(this.#nodes.map(kill))
  }
}

/** Describes tests with nodes that share a database. */
export const describeNodes = (name: string, tests: (nodes: () => NodeProcesses) => void): void =>
  describePostgres(name, (postgres) => {
    let nodes: NodeProcesses | undefined
    beforeAll(async () => {
      nodes = await NodeProcesses.start(await postgres().createDatabase())
    })
    afterAll(() => nodes?.close())
    tests(() => nodes!)
  })

// The number of the next call of any client.
let calls = 0

/**
 * Calls a tool again and again, several times at once, while all nodes are killed and replaced. Only calls in flight at a
 * killed node may fail. `isLost` decides that by the text of a call: by default by its request alone. `killed` runs after a
 * node was killed.
 */
export const callWhileKilled = async (
  nodes: NodeProcesses,
  client: Pick<TestClient, "call">,
  { callers = 3, isLost = (text: string) => nodes.hasLost(text), killed }: {
    readonly callers?: number
    readonly killed?: () => Promise<void>
    readonly isLost?: (text: string) => boolean
  } = {}
): Promise<void> => {
  let isDone = false
  const call = async (): Promise<void> => {
    const text = `call ${calls++}`
    // The answers of some calls are streams.
    const options = calls % 2 === 0 ? {} : { onProgress: () => {} }
    const answered = client.call("echo", { text }, options).then(textOf, (error: unknown) => error)
    let answer: unknown
    // A client may wait for the answer of a killed node for a long time.
    while (answer === undefined && !isLost(text)) answer = await Promise.race([answered, sleep(20)])
    if (answer !== text && !isLost(text)) throw new Error(`${text} failed`, { cause: answer })
  }
  const all = Promise.all(Array.from({ length: callers }, async () => {
    while (!isDone) await call()
  }))
  const more = async (): Promise<void> => {
    const enough = calls + 3 * callers
    await Promise.race([eventually(() => expect(calls).toBeGreaterThan(enough)), all])
  }
  try {
    await nodes.replaceAll(more, async () => {
      await Promise.race([killed?.(), all])
      await more()
    })
  } finally {
    isDone = true
  }
  await all
}
