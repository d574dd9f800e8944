/** A server whose clients send a key. */
// #region server
import { createHash } from "node:crypto"
import { AsyncServer, Refusal } from "skein"

const hash = (key: string) => createHash("sha256").update(key).digest("base64url")

/** The owner of each key, by the hash of the key: `API_KEYS=ada=2f9c…,grace=b71e…`. */
const owners = new Map(
  (process.env["API_KEYS"] ?? "").split(",").filter((entry) => entry !== "").map((entry) => {
    const at = entry.indexOf("=")
    return [hash(entry.slice(at + 1)), entry.slice(0, at)]
  })
)

new AsyncServer({ name: "private", version: "1.0.0" })
  .tool("whoami", { description: "Returns the owner of the key." }, (_, { principal }) => principal!.id)
  .runHttp({
    port: 3000,
    principal: ({ headers }) => {
      const [, key] = /^Bearer (.+)$/i.exec(headers.authorization ?? "") ?? []
      const id = key === undefined ? undefined : owners.get(hash(key))
      if (id !== undefined) return { id }
      const message = "Send a key of this server: Authorization: Bearer <key>"
      throw new Refusal({ status: 401, message, headers: { "www-authenticate": "Bearer" } })
    }
  })
// #endregion
