"""Results: tables that show, save, load and export themselves."""
