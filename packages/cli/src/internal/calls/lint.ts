/**
 * Compares the tools of a server with what the APIs of providers of models accept (`inspect --lint`).
 */
import type { SchemaForm } from "@skein/client/Toolkit"
import type { Tool } from "@skein/protocol/Tool"
import { clip } from "@skein/protocol/Text"
import type { Colors } from "../base/colors.ts"
import { cell, denseTable } from "../base/textTable.ts"

/** A part of a tool that a provider refuses. */
export interface Problem {
  readonly tool: string
  readonly provider: string
  /** The place in the arguments, such as `items[].price`. It is empty for the tool as a whole. */
  readonly at: string
  readonly refused: string
  /** The part that the fitted schema does not say, in words. It is undefined if the meaning is the same. */
  readonly weakened?: string
}

const providers = [
  ["anthropic", "Anthropic"],
  ["bedrock", "Bedrock"],
  ["gemini", "Gemini"],
  ["openai", "OpenAI"]
] as const satisfies ReadonlyArray<readonly [SchemaForm, string]>

/** How many problems are shown. */
const maxProblems = 1_000

/** The problems of the tools, in their order. A problem that several providers have is one row. */
export const lintTools = async (tools: ReadonlyArray<Tool>): Promise<ReadonlyArray<Problem>> => {
  // It loads `effect/ai`.
  const { fitSchema } = await import("@skein/client/Toolkit")
  const problems: Array<Problem> = []
  for (const { inputSchema, name } of tools) {
    if (problems.length >= maxProblems) break
    const tool = clip(name)
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
      problems.push({ tool, provider: "all", at: "", refused: "the name", weakened: "the model receives another name" })
    }
    const found = new Map<string, { problem: Omit<Problem, "provider">; readonly by: Array<string> }>()
    for (const [form, provider] of providers) {
      for (const { at, refused, weakened } of fitSchema(inputSchema, form).changes) {
        const key = JSON.stringify([at, refused, weakened])
        const before = found.get(key)
        const problem = { tool, at, refused, ...weakened === undefined ? undefined : { weakened } }
        if (before === undefined) found.set(key, { problem, by: [provider] })
        else if (!before.by.includes(provider)) before.by.push(provider)
      }
    }
    for (const { by, problem } of found.values()) {
      problems.push({ ...problem, provider: by.length === providers.length ? "all" : by.join(", ") })
    }
  }
  return problems.slice(0, maxProblems)
}

/** The problems as a table. */
export const lintTable = (problems: ReadonlyArray<Problem>, colors?: Colors): string =>
  denseTable(
    ["TOOL", "REFUSED BY", "AT", "REFUSED", "THE MODEL LOSES"],
    problems.map(({ at, provider, refused, tool, weakened = "nothing" }) =>
      [tool, provider, at, refused, weakened].map(cell)
    ),
    colors
  )
