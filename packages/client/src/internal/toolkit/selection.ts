/**
 * Selects the tools of a toolkit within its bounds, and collects the instructions of their servers.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import { clip, quote } from "@skein/protocol/Text"
import type { Origin, Remote } from "./handler.ts"

/** The parts of a tool that a model receives. */
export interface ShownTool {
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: Tool["inputSchema"]
}

/**
 * Whether a model may get a tool. "Host MUST NOT include tools in the agent's tool list when their visibility does not
 * include `"model"`" (MCP Apps 2026-01-26, visibility). The rule is for every host, also for one that shows no interfaces:
 * such a tool is made for the page of the server.
 */
export const isForModel = ({ _meta }: Pick<Tool, "_meta">): boolean => {
  const ui = _meta?.["ui"]
  const visibility = isObject(ui) ? ui["visibility"] : undefined
  return !Array.isArray(visibility) || visibility.includes("model")
}

const encoder = /* @__PURE__ */ new TextEncoder()

/**
 * Estimates how many tokens a model needs for a tool: one for every four bytes of its JSON. A tool that cannot be
 * written as JSON has infinitely many.
 */
export const estimateTokens = (tool: ShownTool): number => {
  try {
    return Math.ceil(encoder.encode(JSON.stringify(tool)).length / 4)
  } catch {
    return Infinity
  }
}

/** A tool that was left out. */
export interface Omitted extends Origin {
  /** The bound that it exceeds. */
  readonly bound: "maxTools" | "maxTokens"
  /** How many tokens it has. */
  readonly tokens: number
}

/** The selected tools, and the others. Both are in the order of the servers and of their lists. */
export interface Selection {
  readonly selected: ReadonlyArray<Remote>
  readonly omitted: ReadonlyArray<Omitted>
  readonly tokens: number
}

/**
 * Selects tools. The servers take turns, so that one server with many or large tools does not displace the tools of the
 * others: each adds the next tool of its list until `maxTools` are selected. A tool with more tokens than are left is
 * left out, and smaller ones may follow.
 */
export const select = (
  all: ReadonlyArray<Remote>,
  maxTools: number,
  maxTokens: number,
  tokensOf: (remote: Remote) => number
): Selection => {
  const byServer = Map.groupBy(all, ({ server }) => server)
  const rounds = Array.from(byServer.values()).flatMap((tools) => tools.map((remote, round) => ({ remote, round })))
    .sort((a, b) => a.round - b.round)
  const excess = new Map<Remote, Omitted>()
  let count = 0
  let total = 0
  for (const { remote } of rounds) {
    const { server, tool } = remote
    const tokens = tokensOf(remote)
    if (count >= maxTools) excess.set(remote, { server, tool, bound: "maxTools", tokens })
    // A count that is not a number exceeds the bound too.
    else if (!(total + tokens <= maxTokens)) excess.set(remote, { server, tool, bound: "maxTokens", tokens })
    else {
      count++
      total += tokens
    }
  }
  return {
    selected: all.filter((remote) => !excess.has(remote)),
    omitted: all.flatMap((remote) => excess.get(remote) ?? []),
    tokens: total
  }
}

/** How long the instructions of one server may be. Longer ones are cut with a "…". */
const maxInstructionsChars = 8_192

/** The instructions of servers as a text for the prompt of a model. It is empty without instructions. */
export const instructionsText = (
  servers: ReadonlyArray<{ readonly server: string | undefined; readonly instructions: string | undefined }>
): string =>
  servers.flatMap(({ instructions, server }) => {
    const text = clip(instructions?.trim() ?? "", maxInstructionsChars)
    if (text === "") return []
    const who = server === undefined ? "the server" : `the server ${quote(server)}`
    return [`Instructions of ${who} for its tools:\n${text}`]
  }).join("\n\n")
