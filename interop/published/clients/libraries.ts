/** The published client libraries that the tests connect to Skein's server. Their versions are in `package.json`. */
import { createRequire } from "node:module"
import * as Frameworks from "./frameworks.ts"
import type { Connect, Server } from "./library.ts"
import * as Sdks from "./sdks.ts"

export interface Library {
  readonly name: string
  /** The name under which it is installed, if it differs. */
  readonly installed?: string
  readonly transports: ReadonlyArray<Server["transport"]>
  readonly connect: Connect
  /** Whether an application can call tools through it; true by default. */
  readonly callsTools?: boolean
}

const { resolve } = createRequire(import.meta.url)
const remoteBin = () => resolve("mcp-remote/package.json").replace(/package\.json$/, "dist/proxy.js")

export const libraries: ReadonlyArray<Library> = [
  {
    name: "@modelcontextprotocol/sdk 1.0",
    installed: "sdk-1.0",
    transports: ["stdio"],
    connect: Sdks.sdk1("sdk-1.0")
  },
  {
    name: "@modelcontextprotocol/sdk 1.8",
    installed: "sdk-1.8",
    transports: ["stdio", "sse"],
    connect: Sdks.sdk1("sdk-1.8")
  },
  {
    name: "@modelcontextprotocol/sdk 1.12",
    installed: "sdk-1.12",
    transports: ["stdio", "http", "sse"],
    connect: Sdks.sdk1("sdk-1.12")
  },
  {
    name: "@modelcontextprotocol/sdk 1.20",
    installed: "sdk-1.20",
    transports: ["stdio", "http", "sse"],
    connect: Sdks.sdk1("sdk-1.20")
  },
  {
    name: "@modelcontextprotocol/client",
    transports: ["stdio", "http", "sse"],
    connect: Sdks.sdk2("@modelcontextprotocol/client", "auto")
  },
  { name: "mcp-client", transports: ["stdio", "http", "sse"], connect: Sdks.mcpClient },
  { name: "@google/genai", transports: ["stdio", "http"], connect: Sdks.googleGenAi },
  { name: "mcp-remote", transports: ["http", "sse"], connect: (server) => Sdks.mcpRemote(remoteBin())(server) },
  { name: "@ai-sdk/mcp", transports: ["stdio", "http", "sse"], connect: Frameworks.aiSdk },
  { name: "@mastra/mcp", transports: ["stdio", "http"], connect: Frameworks.mastra },
  { name: "mcporter", transports: ["stdio", "http"], connect: Frameworks.mcporter },
  { name: "@openai/agents-core", transports: ["stdio", "http", "sse"], connect: Frameworks.openAiAgents },
  { name: "@strands-agents/sdk", transports: ["stdio", "http", "sse"], connect: Frameworks.strands },
  {
    name: "@huggingface/mcp-client",
    transports: ["stdio", "http", "sse"],
    callsTools: false,
    connect: Frameworks.huggingFace
  }
]
