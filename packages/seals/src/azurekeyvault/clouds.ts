/** The addresses of one cloud of Azure. */
export interface AzureCloud {
  /** Domain of the vaults. */
  readonly vaults: string;
  /** URL of the service that issues tokens. */
  readonly authority: string;
}

/** The clouds, by the names that `environment` takes. */
export const azureClouds = {
  AZUREPUBLICCLOUD: { vaults: 'vault.azure.net', authority: 'https://login.microsoftonline.com' },
  AZUREUSGOVERNMENTCLOUD: { vaults: 'vault.usgovcloudapi.net', authority: 'https://login.microsoftonline.us' },
  AZURECHINACLOUD: { vaults: 'vault.azure.cn', authority: 'https://login.chinacloudapi.cn' },
} as const satisfies Readonly<Record<string, AzureCloud>>;
