"""Rules from schedule to schedule: they change order and place and keep every point."""
