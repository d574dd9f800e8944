/**
 * The costs of a fleet on PostgreSQL, and of several workers: `npm run bench -- fleet [--quick]`. Three nodes serve each
 * session in turn, and three others pass its requests on to the node that has opened it (`sessions: "home"`). The database
 * shares the cores with the nodes and the client.
 */
import { describe } from "../lib/machine.ts"
import { confidence, quantile, ratioConfidence } from "../lib/statistics.ts"
import { markdown, ratio } from "../lib/table.ts"
import { Databases } from "../tasks/databases.ts"
import * as workers from "../workers/main.ts"
import { answer, cpuOf, echo, type Node, open, post, startNode, stopNodes } from "./nodes.ts"

interface Plan {
  readonly rounds: number
  /** Of each round: calls at each node, sessions, and questions at each node. */
  readonly calls: number
  readonly sessions: number
  readonly questions: number
}

const thorough: Plan = { rounds: 15, calls: 3_000, sessions: 200, questions: 40 }
const quick: Plan = { rounds: 3, calls: 500, sessions: 30, questions: 10 }

const parts = ["nodes", "workers"] as const
type Part = typeof parts[number]

type Nodes = readonly [Node, Node, Node]

const startNodes = async (url: string, sessions: "shared" | "home", all: Array<Node>): Promise<Nodes> => {
  const nodes: Array<Node> = []
  for (let n = 0; n < 3; n++) {
    nodes.push(await startNode(url, sessions))
    all.push(nodes[n]!)
  }
  return nodes as [Node, Node, Node]
}

/** The processor time of all nodes for a call at one of them, in microseconds. */
const callAt = async (nodes: Nodes, at: Node, session: string, calls: number): Promise<number> => {
  await post(at, session, echo)
  const before = cpuOf(nodes)
  for (let n = 0; n < calls; n++) await post(at, session, echo)
  return (cpuOf(nodes) - before) * 1_000 / calls
}

const measureNodes = async (plan: Plan): Promise<string> => {
  const databases = new Databases()
  const all: Array<Node> = []
  try {
    const shared = await startNodes(await databases.create("postgres"), "shared", all)
    const home = await startNodes(await databases.create("postgres"), "home", all)
    const [first, second, third] = shared
    const samples = {
      here: [] as Array<number>,
      elsewhere: [] as Array<number>,
      homeHere: [] as Array<number>,
      homeElsewhere: [] as Array<number>,
      nodes: [] as Array<number>,
      database: [] as Array<number>,
      answeredHere: [] as Array<number>,
      answeredElsewhere: [] as Array<number>
    }
    // The first round warms the processes up.
    for (let round = -1; round < plan.rounds; round++) {
      const add = (name: keyof typeof samples, value: number): void => {
        if (round >= 0) samples[name].push(value)
      }
      const session = await open(first, first)
      const homeSession = await open(home[0], home[0])
      const calls = [
        async () => add("here", await callAt(shared, first, session, plan.calls)),
        async () => add("elsewhere", await callAt(shared, second, session, plan.calls)),
        async () => add("homeHere", await callAt(home, home[0], homeSession, plan.calls)),
        async () => add("homeElsewhere", await callAt(home, home[1], homeSession, plan.calls))
      ]
      // A drift of the machine within a round is for one of them in this round, and against it in the next.
      for (const call of round % 2 === 0 ? calls : calls.toReversed()) await call()
      const before = { nodes: cpuOf(shared), database: databases.cpu() }
      for (let n = 0; n < plan.sessions; n++) {
        const session = await open(first, second)
        for (const node of [first, second, first]) await post(node, session, echo)
      }
      add("nodes", (cpuOf(shared) - before.nodes) / plan.sessions)
      add("database", (databases.cpu() - before.database) / plan.sessions)
      const answered = { here: [] as Array<number>, elsewhere: [] as Array<number> }
      for (let n = 0; n < plan.questions; n++) {
        answered.here.push(await answer(first, first, session))
        answered.elsewhere.push(await answer(first, third, session))
      }
      add("answeredHere", quantile(answered.here, 0.5))
      add("answeredElsewhere", quantile(answered.elsewhere, 0.5))
    }
    const figure = (samples: ReadonlyArray<number>): string => ratio(confidence(samples))
    const { answeredElsewhere, answeredHere, database, elsewhere, here, homeElsewhere, homeHere, nodes } = samples
    const later = answeredElsewhere.map((millis, round) => millis - answeredHere[round]!)
    return markdown(["a fleet of three nodes on PostgreSQL", "median (95 %)", "bar"], [
      ["processor time of a call where its session was opened, µs", figure(here), ""],
      ["elsewhere / here", ratio(ratioConfidence(elsewhere, here)), "1.15"],
      ["`home`: here / shared here", ratio(ratioConfidence(homeHere, here)), ""],
      ["`home`: elsewhere / here, both nodes", ratio(ratioConfidence(homeElsewhere, homeHere)), "3"],
      ["processor time of a session and 3 calls at two nodes, ms", figure(nodes), "1.5"],
      ["the same in PostgreSQL, ms", figure(database), "0.6"],
      ["a question answered at the node that asks, ms", figure(answeredHere), ""],
      ["later at another node, ms", figure(later), "1"]
    ])
  } finally {
    await stopNodes(all)
    await databases.stop()
  }
}

const usage = `usage: npm run bench -- fleet [--quick] [--only=${parts.join("|")}] [--source]`

/** Runs the benchmark and prints its tables. `--source` runs the workers from Skein's sources, as the nodes are. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let chosen: ReadonlyArray<Part> = parts
  for (const arg of args) {
    const part = parts.find((part) => arg === `--only=${part}`)
    if (part !== undefined) chosen = [part]
    else if (arg !== "--quick" && arg !== "--source") throw new Error(`${arg}: not an option\n${usage}`)
  }
  if (chosen.includes("nodes")) {
    console.log(`${describe()} · npm run bench -- ${["fleet", ...args].join(" ")}\n`)
    console.log(`${await measureNodes(args.includes("--quick") ? quick : thorough)}\n`)
  }
  if (chosen.includes("workers")) await workers.main(args.filter((arg) => !arg.startsWith("--only=")))
}
