/** An issue tracker over HTTP. Every request needs a token of the issuer; changes need the scope `issues:write`. */
import { getRequestListener } from "@hono/node-server"
import {
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  type OAuthMetadata,
  oauthMetadataResponse,
  requireBearerAuth,
  requireScopes,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext
} from "@modelcontextprotocol/server"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { createServer } from "node:http"
import { z } from "zod"

const Status = z.enum(["open", "closed"])
const Issue = z.object({
  id: z.int(),
  title: z.string(),
  body: z.string(),
  labels: z.array(z.string()),
  status: Status,
  author: z.string(),
  comments: z.array(z.object({ author: z.string(), text: z.string() }))
})
type Issue = z.infer<typeof Issue>

const issues = new Map<number, Issue>()
const user = ({ http }: ServerContext) => String(http?.authInfo?.extra?.["sub"])
const find = (id: number) => {
  const issue = issues.get(id)
  if (issue === undefined) throw new Error(`No issue ${id}: call list_issues`)
  return issue
}
const answer = <A extends object>(value: A) => ({
  content: [{ type: "text" as const, text: JSON.stringify(value) }],
  structuredContent: value as A & Record<string, unknown>
})
const save = (issue: Issue) => {
  issues.set(issue.id, issue)
  handler.notify.resourceUpdated(`issues://${issue.id}`)
  return answer(issue)
}

const makeServer = () => {
  const server = new McpServer({ name: "issues", version: "1.0.0" }, {
    capabilities: { resources: { subscribe: true } }
  })
  const scopeChallenge = requireScopes("issues:read", "issues:write")
  server.registerTool(
    "list_issues",
    {
      description: "Lists issues, the newest first.",
      inputSchema: z.object({ status: Status.optional(), label: z.string().optional() }),
      outputSchema: z.object({ issues: z.array(Issue) }),
      annotations: { readOnlyHint: true }
    },
    ({ label, status }) =>
      answer({
        issues: [...issues.values()].reverse().filter((issue) =>
          (!status || issue.status === status) && (!label || issue.labels.includes(label))
        )
      })
  )
  server.registerTool(
    "create_issue",
    {
      description: "Creates an issue.",
      inputSchema: z.object({
        title: z.string().min(1).max(200),
        body: z.string().default(""),
        labels: z.array(z.string()).default([])
      }),
      outputSchema: Issue,
      scopeChallenge
    },
    (input, context) => save({ id: issues.size + 1, ...input, status: "open", author: user(context), comments: [] })
  )
  server.registerTool(
    "add_comment",
    {
      description: "Adds a comment to an issue.",
      inputSchema: z.object({ id: z.int(), text: z.string() }),
      outputSchema: Issue,
      scopeChallenge
    },
    ({ id, text }, context) => {
      const issue = find(id)
      return save({ ...issue, comments: [...issue.comments, { author: user(context), text }] })
    }
  )
  server.registerTool(
    "close_issue",
    {
      description: "Closes an issue.",
      inputSchema: z.object({ id: z.int() }),
      outputSchema: Issue,
      annotations: { idempotentHint: true },
      scopeChallenge
    },
    ({ id }) => save({ ...find(id), status: "closed" })
  )
  server.registerResource(
    "issue",
    new ResourceTemplate("issues://{id}", { list: undefined }),
    { mimeType: "application/json" },
    (uri, { id }) => {
      const issue = issues.get(Number(id))
      if (issue === undefined) throw new ResourceNotFoundError(uri.href)
      return { contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify(issue) }] }
    }
  )
  server.registerPrompt(
    "triage",
    {
      description: "Asks for a label and a next step.",
      argsSchema: z.object({ id: z.coerce.number() })
    },
    ({ id }) => {
      const text = `Suggest one label and the next step for this issue: ${JSON.stringify(find(id))}`
      return { messages: [{ role: "user", content: { type: "text", text } }] }
    }
  )
  return server
}

const port = Number(process.env["PORT"] ?? 3000)
const issuer = process.env["ISSUER"] ?? "https://login.example"
const url = new URL(`http://127.0.0.1:${port}/mcp`)
const oauthMetadata = await fetch(`${issuer}/.well-known/oauth-authorization-server`)
  .then((response) => response.json() as Promise<OAuthMetadata>)
const keys = createRemoteJWKSet(new URL(oauthMetadata["jwks_uri"] as string))
const authenticate = requireBearerAuth({
  verifier: {
    verifyAccessToken: async (token) => {
      try {
        const { payload } = await jwtVerify(token, keys, { issuer, audience: url.href })
        return {
          token,
          clientId: String(payload["client_id"]),
          scopes: String(payload["scope"]).split(" "),
          expiresAt: payload.exp!,
          resource: url,
          extra: { sub: payload.sub }
        }
      } catch (error) {
        throw new OAuthError(OAuthErrorCode.InvalidToken, String(error))
      }
    }
  },
  requiredScopes: ["issues:read"],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
  expectedResource: url
})
const handler = createMcpHandler(makeServer, { legacy: "stateless" })
const listener = getRequestListener(async (request) => {
  const metadata = oauthMetadataResponse(request, { oauthMetadata, resourceServerUrl: url })
  if (metadata !== undefined) return metadata
  const authInfo = await authenticate(request)
  return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo })
})
createServer((request, response) => void listener(request, response)).listen(
  port,
  "127.0.0.1",
  () => console.error(url.href)
)
