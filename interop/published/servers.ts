/**
 * The published servers that the tests read with three clients, and the accepted differences. Versions are in
 * `package.json`. The keys are not valid: no server needs a valid one to start, and none needs a network.
 */
import { fileURLToPath } from "node:url"
import type { Difference } from "./differences.ts"
import type { Requests } from "./readings.ts"

/** How a server listens on a port of 127.0.0.1. The options of the process are added to those of the server. */
export interface Listening {
  readonly transport: "http" | "sse"
  /** The path of its URL: `/mcp` by default, `/sse` for HTTP+SSE. */
  readonly path?: string
  /** The file of the package to run: its program by default. */
  readonly file?: string
  readonly args?: (port: string) => ReadonlyArray<string>
  readonly env?: (port: string) => Readonly<Record<string, string>>
  /** The headers of the clients. */
  readonly headers?: Readonly<Record<string, string>>
  /** Why SDK v2 cannot read it, although Skein and SDK v1 can. */
  readonly unreadBySdkV2?: string
}

export interface PublishedServer extends Partial<Requests> {
  readonly name: string
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** Further arguments over stdio; `false` if it has no stdio. */
  readonly stdio?: ReadonlyArray<string> | false
  /** Transports with a port, over which it is read as well. */
  readonly listening?: ReadonlyArray<Listening>
  readonly differences?: ReadonlyArray<Difference>
  /** A fault of Skein, because of which the test of this server must fail. Remove it together with the fault. */
  readonly fault?: string
}

/** Differences that every server may have. They follow from how Skein and the SDKs return results. */
export const general: ReadonlyArray<Difference> = [
  {
    at: /\/resultType$/,
    reason: "Skein returns results of all revisions in the newest form, which has `resultType`"
  }
]

/** The differences to SDK v1 of a server with 2026-07-28. */
export const newest: ReadonlyArray<Difference> = [
  {
    at:
      /^revision$|^capabilities\/|_meta\/io\.modelcontextprotocol\/serverInfo\/|\/(ttlMs|cacheScope)$|^tools\/\d+\/execution\//,
    from: "sdk-v1",
    reason: "SDK v1 does not have 2026-07-28, which Skein and SDK v2 negotiate with a server that has it"
  }
]

const byEnv = (
  transport: Listening["transport"],
  env: (port: string) => Readonly<Record<string, string>>
): Listening => ({
  transport,
  env
})

const byArgs = (transport: Listening["transport"], ...args: ReadonlyArray<string>): Listening => ({
  transport,
  args: (port) => [...args, "--port", port]
})

const token = "0".repeat(32)
const authorization = { authorization: `Bearer ${token}` }

const everything = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url)
)

const bridged = `"${process.execPath}" "${everything}"`

/** A server that is made with a published library. */
const framework = (
  name: string,
  transports: ReadonlyArray<Listening["transport"]>,
  differences: ReadonlyArray<Difference> = []
): PublishedServer => ({
  name,
  stdio: false,
  listening: transports.map((transport) => ({
    transport,
    file: "../../frameworkServer.ts",
    args: (port) => [name, port]
  })),
  calls: [["add", { a: 2, b: 40 }], ["add", { a: "two" }], ["fail", {}]],
  reads: ["note://one"],
  prompts: [["ask", {}]],
  differences
})

export const servers: ReadonlyArray<PublishedServer> = [
  {
    name: "@modelcontextprotocol/server-everything",
    listening: [
      { transport: "http", args: () => ["streamableHttp"], env: (PORT) => ({ PORT }) },
      { transport: "sse", args: () => ["sse"], env: (PORT) => ({ PORT }) }
    ],
    calls: [
      ["echo", { message: "Grüße, 世界" }],
      ["get-sum", { a: 2, b: 40 }],
      ["get-sum", { a: "two" }],
      ["get-structured-content", { location: "Chicago" }],
      ["get-annotated-message", { messageType: "error", includeImage: true }],
      ["get-tiny-image", {}],
      ["get-resource-links", { count: 2 }]
    ],
    reads: ["demo://resource/static/document/features.md"],
    prompts: [["simple-prompt", {}], ["args-prompt", { city: "Chicago" }], ["args-prompt", {}]]
  },
  {
    name: "@modelcontextprotocol/server-filesystem",
    args: ["."],
    calls: [
      ["list_allowed_directories", {}],
      ["read_text_file", { path: "notes.txt" }],
      ["read_text_file", { path: "absent.txt" }],
      ["list_directory", { path: "." }]
    ]
  },
  {
    name: "@modelcontextprotocol/server-memory",
    calls: [["read_graph", {}], ["search_nodes", { query: "nothing" }]],
    reads: ["memory://knowledge-graph"]
  },
  {
    name: "@modelcontextprotocol/server-sequential-thinking",
    calls: [["sequentialthinking", { thought: "done", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }]]
  },
  {
    name: "@modelcontextprotocol/server-github",
    env: { GITHUB_PERSONAL_ACCESS_TOKEN: "none" },
    calls: [["get_issue", {}]]
  },
  {
    name: "@modelcontextprotocol/server-brave-search",
    env: { BRAVE_API_KEY: "none" },
    calls: [["brave_web_search", {}]]
  },
  {
    name: "@modelcontextprotocol/server-slack",
    env: { SLACK_BOT_TOKEN: "none", SLACK_TEAM_ID: "none" },
    calls: [["slack_post_message", {}]]
  },
  { name: "@modelcontextprotocol/server-google-maps", env: { GOOGLE_MAPS_API_KEY: "none" } },
  {
    name: "@antv/mcp-server-chart",
    listening: [byArgs("http", "--transport", "streamable"), byArgs("sse", "--transport", "sse")]
  },
  {
    name: "@brave/brave-search-mcp-server",
    env: { BRAVE_API_KEY: "none" },
    listening: [byArgs("http", "--transport", "http")]
  },
  { name: "@coo-quack/calc-mcp", calls: [["math", { expression: "6 * 7" }], ["base64", {}]] },
  {
    name: "@cyanheads/git-mcp-server",
    calls: [["git_status", { path: "." }]],
    listening: [{
      ...byEnv("http", (MCP_HTTP_PORT) => ({ MCP_TRANSPORT_TYPE: "http", MCP_HTTP_PORT })),
      unreadBySdkV2: "SDK v2 fails with the status 500 that the server sends to requests of 2026-07-28"
    }]
  },
  { name: "@drawio/mcp" },
  { name: "@eslint/mcp" },
  { name: "@hubspot/mcp-server", env: { PRIVATE_APP_ACCESS_TOKEN: "none" } },
  { name: "@mui/mcp" },
  {
    name: "@notionhq/notion-mcp-server",
    env: { NOTION_TOKEN: "none" },
    listening: [byArgs("http", "--transport", "http", "--unsafe-disable-auth")]
  },
  { name: "@openbnb/mcp-server-airbnb" },
  {
    name: "@perplexity-ai/mcp-server",
    env: { PERPLEXITY_API_KEY: "none" },
    calls: [["perplexity_ask", {}]],
    listening: [{ transport: "http", file: "dist/http.js", env: (PORT) => ({ PORT }) }]
  },
  {
    name: "@playwright/mcp",
    args: ["--headless"],
    calls: [["browser_close", {}]],
    listening: (["http", "sse"] as const).map((transport) =>
      byArgs(transport, "--host", "127.0.0.1", "--allowed-hosts", "*")
    )
  },
  { name: "@sentry/mcp-server", args: ["--access-token=none"] },
  { name: "@shortcut/mcp", env: { SHORTCUT_API_TOKEN: "none" } },
  { name: "@supabase/mcp-server-supabase", env: { SUPABASE_ACCESS_TOKEN: "sbp_none" } },
  { name: "@upstash/context7-mcp", calls: [["query-docs", {}]], listening: [byArgs("http", "--transport", "http")] },
  {
    name: "@zereight/mcp-gitlab",
    env: { GITLAB_PERSONAL_ACCESS_TOKEN: "none" },
    listening: [
      {
        ...byEnv(
          "http",
          (PORT) => ({ STREAMABLE_HTTP: "true", STREAMABLE_HTTP_AUTH_TOKEN: token, HOST: "127.0.0.1", PORT })
        ),
        headers: authorization
      },
      {
        ...byEnv("sse", (PORT) => ({ SSE: "true", SSE_AUTH_TOKEN: token, HOST: "127.0.0.1", PORT })),
        headers: authorization
      }
    ]
  },
  {
    name: "airtable-mcp-server",
    env: { AIRTABLE_API_KEY: "pat.none" },
    listening: [byEnv("http", (PORT) => ({ MCP_TRANSPORT: "http", PORT }))]
  },
  {
    name: "chrome-devtools-mcp",
    calls: [["click", {}]],
    differences: [{
      at: /^tools\/\d+\/annotations\/(category|conditions)/,
      reason: "Skein keeps members of `annotations` that the specification does not define, and the SDKs remove them"
    }]
  },
  { name: "exa-mcp-server", env: { EXA_API_KEY: "none" } },
  {
    name: "figma-developer-mcp",
    stdio: ["--stdio"],
    env: { FIGMA_API_KEY: "none" },
    calls: [["get_figma_data", {}]],
    listening: [byArgs("http")]
  },
  {
    name: "firecrawl-mcp",
    env: { FIRECRAWL_API_KEY: "none" },
    listening: [byEnv("http", (PORT) => ({ HTTP_STREAMABLE_SERVER: "true", PORT }))]
  },
  {
    name: "hostinger-api-mcp",
    env: { API_TOKEN: "none" },
    differences: [{
      at: /^tools\/\d+\/id$/,
      reason: "Skein keeps members of a tool that the specification does not define, and the SDKs remove them"
    }]
  },
  {
    name: "mcp-hello-world",
    differences: [{
      at: /^server\/debug$/,
      reason: "Skein keeps members of `serverInfo` that the specification does not define, and the SDKs remove them"
    }]
  },
  {
    name: "mcp-searxng",
    env: { SEARXNG_URL: "http://127.0.0.1:9" },
    listening: [byEnv("http", (MCP_HTTP_PORT) => ({ MCP_HTTP_PORT }))]
  },
  { name: "mcp-server-code-runner" },
  {
    name: "n8n-mcp",
    listening: [{
      transport: "http",
      file: "dist/mcp/index.js",
      env: (PORT) => ({ MCP_MODE: "http", AUTH_TOKEN: token, HOST: "127.0.0.1", PORT }),
      headers: authorization
    }],
    env: { MCP_MODE: "stdio", DISABLE_CONSOLE_OUTPUT: "true", N8N_MCP_TELEMETRY_DISABLED: "true", LOG_LEVEL: "error" },
    calls: [["tools_documentation", {}], ["get_node", {}]],
    reads: ["ui://n8n-mcp/validation-summary"]
  },
  { name: "replicate-mcp", env: { REPLICATE_API_TOKEN: "none" } },
  { name: "tavily-mcp", env: { TAVILY_API_KEY: "none" } },
  {
    name: "supergateway",
    stdio: false,
    listening: [
      byArgs("http", "--stdio", bridged, "--outputTransport", "streamableHttp", "--stateful"),
      byArgs("sse", "--stdio", bridged)
    ],
    calls: [["echo", { message: "Grüße, 世界" }], ["get-sum", { a: 2, b: 40 }]]
  },
  {
    name: "mcp-proxy",
    stdio: false,
    listening: (["http", "sse"] as const).map((transport) => ({
      transport,
      args: (port) => ["--port", port, "--host", "127.0.0.1", "--", process.execPath, everything]
    })),
    calls: [["echo", { message: "Grüße, 世界" }], ["get-sum", { a: 2, b: 40 }]]
  },
  framework("mcp-lite", ["http"]),
  framework("tmcp", ["http"]),
  framework("fastmcp", ["http", "sse"], [{
    at: /^read note:\/\/one\/contents\/0\/name$/,
    reason: "Skein keeps members of contents that the specification does not define, and the SDKs remove them"
  }])
]
