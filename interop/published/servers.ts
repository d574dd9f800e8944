/**
 * The published servers that the tests read with three clients, and the accepted differences. Versions are in
 * `package.json`. The keys are not valid: no server needs a valid one to start, and none needs a network.
 */
import type { Difference } from "./differences.ts"
import type { Requests } from "./readings.ts"

export interface PublishedServer extends Partial<Requests> {
  readonly name: string
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly differences?: ReadonlyArray<Difference>
  /** A fault of Skein, because of which the test of this server must fail. Remove it together with the fault. */
  readonly fault?: string
}

/** Differences that every server may have. They follow from how Skein and the SDKs return results. */
export const general: ReadonlyArray<Difference> = [
  {
    at: /\/resultType$/,
    reason: "Skein returns results of all revisions in the newest form, which has `resultType`"
  },
  {
    at: /^revision$|^capabilities\/|_meta\/io\.modelcontextprotocol\/serverInfo\//,
    from: "sdk-v1",
    reason: "SDK v1 does not have 2026-07-28, which Skein and SDK v2 negotiate with a server that has it"
  }
]

export const servers: ReadonlyArray<PublishedServer> = [
  {
    name: "@modelcontextprotocol/server-everything",
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
  { name: "@antv/mcp-server-chart" },
  { name: "@brave/brave-search-mcp-server", env: { BRAVE_API_KEY: "none" } },
  { name: "@coo-quack/calc-mcp", calls: [["math", { expression: "6 * 7" }], ["base64", {}]] },
  { name: "@cyanheads/git-mcp-server", calls: [["git_status", { path: "." }]] },
  { name: "@drawio/mcp" },
  { name: "@eslint/mcp" },
  { name: "@hubspot/mcp-server", env: { PRIVATE_APP_ACCESS_TOKEN: "none" } },
  { name: "@mui/mcp" },
  { name: "@notionhq/notion-mcp-server", env: { NOTION_TOKEN: "none" } },
  { name: "@openbnb/mcp-server-airbnb" },
  { name: "@perplexity-ai/mcp-server", env: { PERPLEXITY_API_KEY: "none" }, calls: [["perplexity_ask", {}]] },
  { name: "@playwright/mcp", args: ["--headless"], calls: [["browser_close", {}]] },
  { name: "@sentry/mcp-server", args: ["--access-token=none"] },
  { name: "@shortcut/mcp", env: { SHORTCUT_API_TOKEN: "none" } },
  { name: "@supabase/mcp-server-supabase", env: { SUPABASE_ACCESS_TOKEN: "sbp_none" } },
  { name: "@upstash/context7-mcp", calls: [["query-docs", {}]] },
  { name: "@zereight/mcp-gitlab", env: { GITLAB_PERSONAL_ACCESS_TOKEN: "none" } },
  { name: "airtable-mcp-server", env: { AIRTABLE_API_KEY: "pat.none" } },
  {
    name: "chrome-devtools-mcp",
    calls: [["click", {}]],
    differences: [{
      at: /^tools\/\d+\/annotations\/(category|conditions)/,
      reason: "Skein keeps members of `annotations` that the specification does not define, and the SDKs remove them"
    }]
  },
  { name: "exa-mcp-server", env: { EXA_API_KEY: "none" } },
  { name: "figma-developer-mcp", args: ["--stdio"], env: { FIGMA_API_KEY: "none" }, calls: [["get_figma_data", {}]] },
  { name: "firecrawl-mcp", env: { FIRECRAWL_API_KEY: "none" } },
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
  { name: "mcp-searxng", env: { SEARXNG_URL: "http://127.0.0.1:9" } },
  { name: "mcp-server-code-runner" },
  {
    name: "n8n-mcp",
    env: { MCP_MODE: "stdio", DISABLE_CONSOLE_OUTPUT: "true", N8N_MCP_TELEMETRY_DISABLED: "true", LOG_LEVEL: "error" },
    calls: [["tools_documentation", {}], ["get_node", {}]],
    reads: ["ui://n8n-mcp/validation-summary"]
  },
  { name: "replicate-mcp", env: { REPLICATE_API_TOKEN: "none" } },
  { name: "tavily-mcp", env: { TAVILY_API_KEY: "none" } }
]
