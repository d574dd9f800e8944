/**
 * The fields of the objects of OpenAPI 3.0, 3.1 and 3.2, with the treatment of each, and the places of a document that
 * have no effect although a reader of the document expects one.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import { choose, isMediaType } from "../arguments/body.ts"
import { isStyleOf, places } from "../arguments/arguments.ts"
import type { Document } from "../document/pointer.ts"
import type { Found } from "../document/operations.ts"
import { find, pointer } from "../document/pointer.ts"
import { isUsablePattern } from "../schema/keywords.ts"

/** The objects of the specifications. `Schema` has the keywords of JSON Schema 2020-12, too. */
export type ObjectName =
  | "OpenAPI"
  | "Info"
  | "Contact"
  | "License"
  | "Server"
  | "Server Variable"
  | "Components"
  | "Paths"
  | "Path Item"
  | "Operation"
  | "External Documentation"
  | "Parameter"
  | "Request Body"
  | "Media Type"
  | "Encoding"
  | "Responses"
  | "Response"
  | "Callback"
  | "Example"
  | "Link"
  | "Header"
  | "Tag"
  | "Reference"
  | "Schema"
  | "Discriminator"
  | "XML"
  | "Security Scheme"
  | "OAuth Flows"
  | "OAuth Flow"
  | "Security Requirement"

/** The fields of an object by their treatment. A field that is not in each version has its versions in parentheses. */
export interface Treatments {
  /** The field has the effect that the specification describes. */
  readonly honoured?: ReadonlyArray<string>
  /** A model receives the field in another form. */
  readonly translated?: ReadonlyArray<string>
  /** The field, or some of its values, have no effect. `leftOut` has its place. */
  readonly reported?: ReadonlyArray<string>
  /** The field concerns no call: it documents, or describes a part without effect. */
  readonly unused?: ReadonlyArray<string>
}

/** All fields of all objects. `docs/openapi.md` has the same table. */
export const coverage: Readonly<Record<ObjectName, Treatments>> = {
  OpenAPI: {
    honoured: ["openapi", "$self (3.2)", "servers", "paths", "components", "security"],
    translated: ["info"],
    reported: ["jsonSchemaDialect (3.1)", "webhooks (3.1)"],
    unused: ["tags", "externalDocs"]
  },
  Info: {
    translated: ["title"],
    unused: ["summary (3.1)", "description", "termsOfService", "contact", "license", "version"]
  },
  Contact: { unused: ["name", "url", "email"] },
  License: { unused: ["name", "identifier (3.1)", "url"] },
  Server: { honoured: ["url", "variables"], unused: ["description", "name (3.2)"] },
  "Server Variable": { honoured: ["default"], unused: ["enum", "description"] },
  Components: {
    honoured: ["schemas", "responses", "parameters", "requestBodies", "headers", "pathItems (3.1)", "mediaTypes (3.2)"],
    translated: ["examples"],
    unused: ["securitySchemes", "links", "callbacks"]
  },
  Paths: { honoured: ["/{path}"] },
  "Path Item": {
    honoured: [
      ...["$ref", "get", "put", "post", "delete", "options", "head", "patch", "query (3.2)", "servers", "parameters"],
      "additionalOperations (3.2)"
    ],
    translated: ["summary", "description"],
    reported: ["trace"]
  },
  Operation: {
    honoured: ["tags", "parameters", "requestBody", "responses", "security", "servers"],
    translated: ["summary", "description", "operationId", "deprecated"],
    reported: ["callbacks"],
    unused: ["externalDocs"]
  },
  "External Documentation": { unused: ["description", "url"] },
  Parameter: {
    honoured: ["required", "allowEmptyValue", "explode", "schema", "content"],
    translated: ["description", "deprecated", "example", "examples"],
    reported: ["name", "in", "style", "allowReserved"]
  },
  "Request Body": { honoured: ["required"], translated: ["description"], reported: ["content"] },
  "Media Type": {
    honoured: ["encoding"],
    translated: ["example", "examples"],
    reported: ["schema", "itemSchema (3.2)", "prefixEncoding (3.2)", "itemEncoding (3.2)"]
  },
  Encoding: {
    honoured: ["contentType"],
    reported: [
      ...["headers", "style", "explode", "allowReserved", "encoding (3.2)", "prefixEncoding (3.2)"],
      "itemEncoding (3.2)"
    ]
  },
  Responses: { honoured: ["{status}", "default"] },
  Response: {
    honoured: ["content"],
    reported: ["links"],
    unused: ["summary (3.2)", "description", "headers"]
  },
  Callback: { unused: ["{expression}"] },
  Example: {
    translated: ["value", "dataValue (3.2)"],
    unused: ["summary", "description", "serializedValue (3.2)", "externalValue"]
  },
  Link: { unused: ["operationRef", "operationId", "parameters", "requestBody", "description", "server"] },
  Header: {
    unused: [
      ...["description", "required", "deprecated", "style", "explode", "schema", "content", "example", "examples"]
    ]
  },
  Tag: {
    honoured: ["name"],
    unused: ["summary (3.2)", "description", "externalDocs", "parent (3.2)", "kind (3.2)"]
  },
  Reference: { honoured: ["$ref"], translated: ["description (3.1)"], unused: ["summary (3.1)"] },
  Schema: {
    honoured: [
      ...["type", "enum", "multipleOf", "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems"],
      ...["uniqueItems", "maxProperties", "minProperties", "required", "properties", "additionalProperties", "items"],
      ...["allOf", "anyOf", "not", "readOnly", "writeOnly", "$ref", "const (3.1)", "$id (3.1)", "$anchor (3.1)"],
      ...["$defs (3.1)", "prefixItems (3.1)", "contains (3.1)", "minContains (3.1)", "maxContains (3.1)", "if (3.1)"],
      ...["then (3.1)", "else (3.1)", "propertyNames (3.1)", "dependentSchemas (3.1)", "dependentRequired (3.1)"],
      ...["unevaluatedItems (3.1)", "unevaluatedProperties (3.1)", "contentEncoding (3.1)", "contentMediaType (3.1)"],
      "contentSchema (3.1)"
    ],
    translated: [
      ...["title", "description", "default", "deprecated", "example", "examples (3.1)", "format", "pattern", "oneOf"],
      ...["nullable (3.0)", "exclusiveMaximum", "exclusiveMinimum", "$dynamicAnchor (3.1)"]
    ],
    reported: ["discriminator", "patternProperties (3.1)", "$schema (3.1)", "$dynamicRef (3.1)"],
    unused: ["externalDocs", "xml", "$comment (3.1)", "$vocabulary (3.1)"]
  },
  Discriminator: { translated: ["propertyName", "mapping"], unused: ["defaultMapping (3.2)"] },
  XML: { unused: ["name", "namespace", "prefix", "attribute", "wrapped", "nodeType (3.2)"] },
  "Security Scheme": {
    unused: [
      ...["type", "description", "name", "in", "scheme", "bearerFormat", "flows", "openIdConnectUrl"],
      ...["oauth2MetadataUrl (3.2)", "deprecated (3.2)"]
    ]
  },
  "OAuth Flows": {
    unused: ["implicit", "password", "clientCredentials", "authorizationCode", "deviceAuthorization (3.2)"]
  },
  "OAuth Flow": {
    unused: ["authorizationUrl", "deviceAuthorizationUrl (3.2)", "tokenUrl", "refreshUrl", "scopes"]
  },
  "Security Requirement": { honoured: ["{name}"] }
}

/** A part of a document without effect. */
export interface Report {
  /** The JSON Pointer of the part. */
  readonly place: string
  readonly message: string
}

const isDialect = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === "string" &&
    /^https:\/\/(?:spec\.openapis\.org\/oas\/3\.\d\/(?:dialect|schema)\b|json-schema\.org\/draft\/2020-12\/schema#?$)/
      .test(value))

const isEmpty = (value: unknown): boolean =>
  value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0)

const entriesOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  isObject(value)
    ? Object.entries(value)
    : Array.isArray(value)
    ? [...value.entries()].map(([at, v]) => [`${at}`, v])
    : []

const schemaLists = ["allOf", "anyOf", "oneOf", "prefixItems", "properties", "patternProperties", "dependentSchemas"]
const schemaParts = [
  ...["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"],
  ...["unevaluatedProperties", "contentSchema"]
]

/** Finds the parts without effect of operations. Each part of the document is visited once for all operations. */
export class Reporter {
  readonly #document: Document
  readonly #seen = new WeakSet<object>()
  readonly found: Array<Report> = []

  constructor(document: Document) {
    this.#document = document
    const { jsonSchemaDialect, webhooks } = document.root
    if (!isDialect(jsonSchemaDialect)) {
      this.#add("#/jsonSchemaDialect", `Schemas of ${quote(String(jsonSchemaDialect))} are read as JSON Schema 2020-12`)
    }
    if (!isEmpty(webhooks)) this.#add("#/webhooks", "Webhooks are requests of the API, which no tool can receive")
  }

  /** Adds the parts without effect of an operation that is registered. */
  addOperation({ node, operation: { path }, parameters, place }: Found): void {
    if (!isEmpty(node["callbacks"])) {
      this.#add(`${place}/callbacks`, "Callbacks are requests of the API, which no tool can receive")
    }
    for (const parameter of parameters()) {
      const { in: where, name } = parameter.node
      if (where === "path" && !path.includes(`{${String(name)}}`)) {
        this.#add(`${parameter.place}/name`, `The path ${quote(path, 100)} has no {${String(name)}}. It is not sent`)
      }
      this.#parameter(parameter.node, parameter.place)
    }
    this.#enter(node["requestBody"], `${place}/requestBody`, (request, at) => {
      const content = isObject(request["content"]) ? request["content"] : {}
      const chosen = choose(content)
      if (chosen === undefined) return
      const within = at + pointer("content", chosen.key).slice(1)
      if (!isMediaType(chosen.key)) {
        this.#add(within, `${quote(chosen.key, 100)} is not a media type. The body is sent as application/json`)
      }
      this.#enter(content[chosen.key], within, (media, from) => this.#mediaType(media, from, chosen.kind))
    })
    for (const [status, each] of entriesOf(node["responses"])) {
      this.#enter(each, `${place}/responses/${status}`, (response, at) => {
        if (isEmpty(response["links"])) return
        this.#add(`${at}/links`, "A model sees no links. It reads the values for further calls in the answer")
      })
    }
  }

  #add(place: string, message: string): void {
    this.found.push({ place, message })
  }

  /** Follows references, and visits an object that is new. A broken reference has taken its operation already. */
  #enter(node: unknown, place: string, visit: (node: JsonObject, place: string) => void): void {
    let value = node
    let at = place
    for (let count = 0; isObject(value) && count < 32; count++) {
      if (this.#seen.has(value)) return
      this.#seen.add(value)
      visit(value, at)
      const reference = value["$ref"]
      if (typeof reference !== "string") return
      try {
        value = find(this.#document.root, reference)
        at = reference
      } catch {
        return
      }
    }
  }

  #parameter(parameter: JsonObject, place: string): void {
    this.#enter(parameter, place, (node, at) => {
      const { allowReserved, content, in: where, name, schema, style } = node
      if (name === undefined) return this.#add(at, "The parameter has no name. It is not sent")
      const named = `The parameter ${quote(String(name))}`
      if (!places.has(where)) {
        return this.#add(
          `${at}/in`,
          `${named} is in ${quote(String(where))}, which OpenAPI 3 does not have. It is not sent`
        )
      }
      if (style !== undefined && !isStyleOf(where, style)) {
        this.#add(`${at}/style`, `${named} cannot have this style in ${String(where)}. It has the default style`)
      }
      if (allowReserved === true && where !== "query" && where !== "querystring") {
        this.#add(`${at}/allowReserved`, `${named} is encoded, because reserved characters would leave its place`)
      }
      this.#schema(schema, `${at}/schema`)
      for (const [type, media] of entriesOf(content)) {
        this.#enter(
          media,
          at + pointer("content", type).slice(1),
          ({ schema: each }, from) => this.#schema(each, `${from}/schema`)
        )
      }
    })
  }

  #mediaType(media: JsonObject, place: string, kind: string): void {
    if (isObject(media["schema"]) && kind === "text" && media["schema"]["type"] !== "string") {
      this.#add(`${place}/schema`, "The body is a text, which the model writes without its schema")
    } else {
      this.#schema(media["schema"], `${place}/schema`)
    }
    for (const field of ["itemSchema", "prefixEncoding", "itemEncoding"]) {
      if (media[field] !== undefined) {
        this.#add(`${place}/${field}`, "The body is one text or one list of parts, which this does not describe")
      }
    }
    const unused = ["headers", "encoding", "prefixEncoding", "itemEncoding"]
    const ofForms = ["style", "explode", "allowReserved"]
    for (const [name, each] of entriesOf(media["encoding"])) {
      if (!isObject(each)) continue
      for (const field of [...unused, ...(kind === "form" ? [] : ofForms)]) {
        if (isEmpty(each[field])) continue
        this.#add(place + pointer("encoding", name, field).slice(1), "It has no effect on the part of this body")
      }
    }
  }

  /** Visits a schema and those below it. A chain of references may be longer than the stack. */
  #schema(first: unknown, firstPlace: string): void {
    const left: Array<readonly [node: unknown, place: string]> = [[first, firstPlace]]
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [node, place] = next
      this.#enter(node, place, (schema, at) => {
        this.#keywords(schema, at)
        for (const key of schemaParts) left.push([schema[key], `${at}/${key}`])
        for (const key of schemaLists) {
          for (const [name, child] of entriesOf(schema[key])) left.push([child, at + pointer(key, name).slice(1)])
        }
      })
    }
  }

  #keywords(schema: JsonObject, place: string): void {
    const { $dynamicRef, $schema, anyOf, discriminator, oneOf, patternProperties } = schema
    if ($dynamicRef !== undefined && this.#document.version !== "3.0") {
      this.#add(
        `${place}/$dynamicRef`,
        `${quote(String($dynamicRef), 100)} has several targets. A value of any of them is accepted`
      )
    }
    if (!isDialect($schema)) {
      this.#add(`${place}/$schema`, `A schema of ${quote(String($schema))} is read as JSON Schema 2020-12`)
    }
    if (isObject(discriminator) && oneOf === undefined && anyOf === undefined) {
      this.#add(
        `${place}/discriminator`,
        `The schemas that ${
          quote(String(discriminator["propertyName"]))
        } selects are not listed in oneOf or anyOf, so ` +
          "that a model sees this schema only"
      )
    }
    for (const [pattern] of entriesOf(patternProperties)) {
      if (isUsablePattern(pattern)) continue
      const message = `The pattern ${quote(pattern, 100)} cannot be checked in linear time`
      this.#add(place + pointer("patternProperties", pattern).slice(1), message)
    }
  }
}
