/**
 * The hosts that `install` writes to: their files, and the form of an entry in them.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Place } from "../base/nodeFiles.ts"

/** A server as an entry of a host. */
export type InstalledServer =
  | {
    readonly _tag: "Command"
    readonly command: string
    readonly args: ReadonlyArray<string>
    readonly env: Readonly<Record<string, string>>
  }
  | { readonly _tag: "Url"; readonly url: string; readonly headers: Readonly<Record<string, string>> }

/** A host. */
export interface Host {
  /** Its name for people. */
  readonly title: string
  /** Its file for all projects of the user. Undefined if there is none. */
  readonly userFile: ((place: Place) => string) | undefined
  /** Its file in the folder of a project. Undefined if there is none. */
  readonly projectFile: ((place: Place) => string) | undefined
  /** The member of the file that has the entries. */
  readonly member: "mcpServers" | "servers" | "mcp_servers"
  /** The language of the file. */
  readonly format: "json" | "toml"
  /** The entry. Undefined if the file cannot have such a server. */
  readonly entry: (server: InstalledServer) => JsonObject | undefined
  /** The instruction for the user after the entry was written: how the host loads it. */
  readonly next: string
}

const path = ({ platform }: Place, ...parts: ReadonlyArray<string>): string =>
  parts.join(platform === "win32" ? "\\" : "/")

const inHome = (...parts: ReadonlyArray<string>) => (place: Place): string => path(place, place.home, ...parts)

const inProject = (...parts: ReadonlyArray<string>) => (place: Place): string => path(place, place.folder, ...parts)

/** The folder of an application for its settings. */
const settings = (place: Place): string => {
  const { env, home, platform } = place
  switch (platform) {
    case "darwin":
      return path(place, home, "Library", "Application Support")
    case "win32":
      return env["APPDATA"] || path(place, home, "AppData", "Roaming")
    default:
      return env["XDG_CONFIG_HOME"] || path(place, home, ".config")
  }
}

/** The members without those that are empty. */
const dense = (members: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) =>
      typeof value !== "object" || value === null || Object.keys(value).length > 0
    )
  )

/** The entry of hosts that know the transport by the names of the members. `url` is that of Streamable HTTP. */
const untyped = (url: string) => (server: InstalledServer): JsonObject =>
  server._tag === "Command"
    ? dense({ command: server.command, args: server.args, env: server.env })
    : dense({ [url]: server.url, headers: server.headers })

/** The entry of hosts that have a member `type`. */
const typed = (server: InstalledServer): JsonObject => ({
  type: server._tag === "Command" ? "stdio" : "http",
  ...untyped("url")(server)
})

/** Why Claude Desktop cannot have a server with a URL. */
export const noUrls =
  "The file of Claude Desktop has commands only: add a server with a URL in its settings, under Connectors"

/** The hosts by the name of the option. */
export const hosts = {
  // It takes a server with a URL in its settings only, under Connectors.
  "claude-desktop": {
    title: "Claude Desktop",
    userFile: (place) => path(place, settings(place), "Claude", "claude_desktop_config.json"),
    projectFile: undefined,
    member: "mcpServers",
    format: "json",
    entry: (server) => server._tag === "Command" ? untyped("url")(server) : undefined,
    next: "Restart Claude Desktop to start the server"
  },
  "claude-code": {
    title: "Claude Code",
    userFile: undefined,
    projectFile: inProject(".mcp.json"),
    member: "mcpServers",
    format: "json",
    entry: typed,
    next: "Claude Code asks for your approval when it starts in this folder"
  },
  cursor: {
    title: "Cursor",
    userFile: inHome(".cursor", "mcp.json"),
    projectFile: inProject(".cursor", "mcp.json"),
    member: "mcpServers",
    format: "json",
    entry: untyped("url"),
    next: "Turn the server on in the settings of Cursor, under MCP"
  },
  vscode: {
    title: "VS Code",
    userFile: undefined,
    projectFile: inProject(".vscode", "mcp.json"),
    member: "servers",
    format: "json",
    entry: typed,
    next: "Start the server in VS Code with the command MCP: List Servers"
  },
  gemini: {
    title: "Gemini CLI",
    userFile: inHome(".gemini", "settings.json"),
    projectFile: inProject(".gemini", "settings.json"),
    member: "mcpServers",
    format: "json",
    entry: untyped("httpUrl"),
    next: "Gemini CLI starts the server with its next session"
  },
  codex: {
    title: "Codex",
    userFile: (place) => path(place, place.env["CODEX_HOME"] || path(place, place.home, ".codex"), "config.toml"),
    projectFile: undefined,
    member: "mcp_servers",
    format: "toml",
    entry: (server) =>
      server._tag === "Command" ? untyped("url")(server) : dense({ url: server.url, http_headers: server.headers }),
    next: "Codex starts the server with its next session"
  }
} as const satisfies Readonly<Record<string, Host>>

export type HostName = keyof typeof hosts

export const hostNames = Object.keys(hosts) as ReadonlyArray<HostName>
