export * as HttpApiTools from "./HttpApiTools.ts"
export * as OpenApi from "./OpenApi.ts"
export * as OpenApiError from "./OpenApiError.ts"
